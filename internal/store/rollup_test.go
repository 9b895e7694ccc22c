package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// chore runs one of the chores, which must succeed.
func chore(t testing.TB, s *store.Store, name string, now time.Time) (removed int64) {
	t.Helper()
	for _, c := range s.Chores() {
		if c.Name() == name {
			removed, err := c.Run(t.Context(), now)
			require.NoError(t, err)
			return removed
		}
	}
	require.FailNow(t, "no such chore", name)
	return 0
}

// history is all that was counted in a test.
type history []domain.Stats

// since is what belongs to a window, by partition.
func (h history) since(group string, since time.Time) map[string]domain.Counters {
	sums := map[string]domain.Counters{}
	for _, stats := range h {
		for key, n := range stats {
			if key.Group == group && !key.Minute.Before(since) {
				at := fmt.Sprintf("%s/%d", key.Topic, key.Partition)
				sums[at] = sums[at].Plus(n)
			}
		}
	}
	return sums
}

// shown is what the store says of a window, by partition.
func shown(t *testing.T, s *store.Store, group string, since time.Time) map[string]domain.Counters {
	t.Helper()
	stats, err := s.DedupStats(t.Context(), group, since)
	require.NoError(t, err)
	sums := map[string]domain.Counters{}
	for _, p := range stats.Partitions {
		sums[fmt.Sprintf("%s/%d", p.Topic, p.Partition)] = p.Counters
	}
	return sums
}

// someStats are counters of some keys in some minutes of the last 400 days, most of them
// recent, whose numbers are large and small.
func someStats(random *rand.Rand, now time.Time) domain.Stats {
	stats := domain.Stats{}
	for range 1 + random.IntN(20) {
		reach := []time.Duration{time.Hour, 3 * time.Hour, 24 * time.Hour, 9 * 24 * time.Hour, 399 * 24 * time.Hour}[random.IntN(5)]
		key := domain.StatKey{
			Group: group, Topic: []string{"orders.confirmed", "orders.old"}[random.IntN(2)], Partition: random.Int32N(3),
			Minute: now.Add(-time.Duration(random.Int64N(int64(reach)))).Truncate(time.Minute),
		}
		if random.IntN(10) == 0 {
			key.Group = "another-group"
		}
		n := distinct(random.Int64N(1000) - 200)
		n.IDAheadMax = time.Duration(random.IntN(1000)) * time.Millisecond
		stats[key] = n
	}
	return stats
}

// Whatever is rolled up, late or early, the sums are those of what was counted.
func TestRollingUpChangesNoSum(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now().UTC()
	windows := []time.Duration{
		time.Minute, time.Hour, 2*time.Hour + time.Minute, 5 * time.Hour, 25 * time.Hour, 7*24*time.Hour - 5*time.Minute,
		7*24*time.Hour + 5*time.Minute, 8 * 24 * time.Hour, 30 * 24 * time.Hour, 399 * 24 * time.Hour,
	}
	var counted history
	for round := range 12 {
		for range 5 {
			stats := someStats(random, now)
			count(t, s, stats)
			counted = append(counted, stats)
		}
		if round%3 != 1 {
			chore(t, s, "statistics", now)
		}
		for _, g := range []string{group, "another-group"} {
			require.Equal(t, counted.since(g, time.Time{}), shown(t, s, g, time.Time{}), "round %d, %s, all", round, g)
		}
		for _, w := range windows {
			since := now.Add(-w).Truncate(time.Minute)
			if w > 7*24*time.Hour {
				since = since.Truncate(time.Hour)
			}
			require.Equal(t, counted.since(group, since), shown(t, s, group, now.Add(-w)), "round %d, %s", round, w)
		}
	}
}

func TestMinutesStayAsTheyAreForTwoHours(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	now := epoch.Add(30 * time.Second)
	for _, minutes := range []int{0, 119, 120, 121, 500} {
		key := at(0, 0)
		key.Minute = epoch.Add(-time.Duration(minutes) * time.Minute).Truncate(time.Minute)
		count(t, s, domain.Stats{key: distinct(1)})
	}
	require.EqualValues(t, 2, chore(t, s, "statistics", now))
	require.Equal(t, 3, value[int](t, conn, `SELECT count(*) FROM dedup_stat`))
	require.Equal(t, "day 1, ever 1, hour 2, minute 2", value[string](t, conn,
		`SELECT string_agg(span || ' ' || n, ', ' ORDER BY span) FROM (SELECT span, count(*) AS n FROM dedup_stat_rollup GROUP BY span) AS s`))
	require.Zero(t, chore(t, s, "statistics", now), "there is nothing more to do")
}

func TestSumsAreForgottenByTheirSpanAndTheWholeNever(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	now := time.Now().UTC()
	for _, days := range []int{1, 6, 8, 399, 402} {
		key := at(0, 0)
		key.Minute = now.AddDate(0, 0, -days).Truncate(time.Minute)
		count(t, s, domain.Stats{key: {Received: 1}})
	}
	for range 2 { // what is too old when it is rolled up goes in the same turn
		chore(t, s, "statistics", now)
		require.Equal(t, "day 4, ever 1, hour 4, minute 2", value[string](t, conn,
			`SELECT string_agg(span || ' ' || n, ', ' ORDER BY span) FROM (SELECT span, count(*) AS n FROM dedup_stat_rollup GROUP BY span) AS s`))
		require.EqualValues(t, 5, total(t, s).Received)
	}
	chore(t, s, "statistics", now.AddDate(2, 0, 0))
	require.Equal(t, "ever 1", value[string](t, conn,
		`SELECT string_agg(span || ' ' || n, ', ' ORDER BY span) FROM (SELECT span, count(*) AS n FROM dedup_stat_rollup GROUP BY span) AS s`))
	require.EqualValues(t, 5, total(t, s).Received)
}

// Two roll up at once while others count in the very minutes that they take: nothing is
// lost, nothing counts twice, and nobody waits in a circle.
func TestRollingUpWhileOthersCountLosesNothing(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	const writers, rounds, keys = 4, 60, 8
	errs := make(chan error, writers+2)
	stop := make(chan struct{})
	var writing, rolling sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for r := range rounds {
				stats := domain.Stats{}
				for k := range keys {
					stats[at(int32((k+w)%keys), r%3)] = distinct(1)
				}
				if err := s.Transact(t.Context(), func(tx domain.Tx) error { return tx.Count(t.Context(), stats) }); err != nil {
					errs <- fmt.Errorf("writer %d: %w", w, err)
					return
				}
			}
		})
	}
	for range 2 {
		rolling.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Chores()[0].Run(t.Context(), epoch.Add(24*time.Hour)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	rolling.Wait()
	close(errs)
	require.NoError(t, <-errs)
	require.Equal(t, distinct(writers*rounds*keys), total(t, s))
	chore(t, s, "statistics", epoch.Add(24*time.Hour))
	require.Equal(t, distinct(writers*rounds*keys), total(t, s))
	require.Zero(t, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM dedup_stat`))
}

// A transaction that counts in an old minute and is open holds nobody up, and its
// minute goes another time.
func TestAnOpenTransactionKeepsNoRollUpWaiting(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	count(t, s, domain.Stats{at(0, 0): distinct(1), at(1, 0): distinct(2)})
	within(t, s, func(tx domain.Tx) error {
		require.NoError(t, tx.Count(t.Context(), domain.Stats{at(0, 0): distinct(4)}))
		require.EqualValues(t, 1, chore(t, s, "statistics", epoch.Add(24*time.Hour)))
		require.Equal(t, distinct(3), total(t, s))
		return nil
	})
	require.Equal(t, distinct(7), total(t, s))
	require.EqualValues(t, 1, chore(t, s, "statistics", epoch.Add(24*time.Hour)))
	require.Equal(t, distinct(7), total(t, s))
}

// A column that is added to the one table and not to the other would not be rolled up.
func TestTheSumsHaveEveryColumnOfTheMinutes(t *testing.T) {
	t.Parallel()
	conn := storetest.Conn(t, storetest.URL(t))
	const columns = `SELECT string_agg(column_name || ' ' || data_type || ' ' || is_nullable, ', ' ORDER BY column_name)
		FROM information_schema.columns WHERE table_name = $1 AND column_name NOT IN ('span', 'at', 'minute')`
	require.Equal(t, value[string](t, conn, columns, "dedup_stat"), value[string](t, conn, columns, "dedup_stat_rollup"))
}

func TestSeriesShowWhatWasCountedInEachStep(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	random := rand.New(rand.NewPCG(3, 4))
	now := time.Now().UTC()
	var counted history
	for range 30 {
		stats := someStats(random, now)
		count(t, s, stats)
		counted = append(counted, stats)
	}
	for _, rolled := range []bool{false, true, true} {
		if rolled {
			chore(t, s, "statistics", now)
			late := someStats(random, now)
			count(t, s, late)
			counted = append(counted, late)
		}
		for step, reach := range map[domain.SeriesStep]time.Duration{
			domain.StepMinute: 20 * time.Hour, domain.StepHour: 60 * 24 * time.Hour, domain.StepDay: 300 * 24 * time.Hour,
		} {
			series, err := s.DedupSeries(t.Context(), group, now.Add(-reach), step)
			require.NoError(t, err)
			from := now.Add(-reach).Truncate(step.Width())
			require.Equal(t, from, series.Since)
			points, last := map[time.Time]domain.Counters{}, time.Time{}
			for _, p := range series.Points {
				require.True(t, p.At.After(last), "in order")
				points[p.At], last = p.Counters, p.At
			}
			want := map[time.Time]domain.Counters{}
			for _, stats := range counted {
				for key, n := range stats {
					if at := key.Minute.Truncate(step.Width()); key.Group == group && !at.Before(from) {
						want[at] = want[at].Plus(n)
					}
				}
			}
			require.Equal(t, want, points, "%s, rolled up: %t", step, rolled)
		}
	}
	all, err := s.DedupSeries(t.Context(), group, time.Time{}, domain.StepMinute)
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(-(domain.MaxSeriesPoints-1)*time.Minute), all.Since, 2*time.Minute)
	_, err = s.DedupSeries(t.Context(), group, now, "week")
	require.EqualError(t, err, `step "week": want minute, hour or day`)
}

// Whoever goes back to a version without sums finds everything that was ever counted.
func TestGoingBackBeforeTheSumsKeepsWhatWasCounted(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	count(t, s, domain.Stats{at(0, 0): distinct(1), at(0, 300): distinct(2), at(1, 0): distinct(4)})
	require.EqualValues(t, 3, chore(t, s, "statistics", epoch.Add(24*time.Hour)))
	count(t, s, domain.Stats{at(0, 0): distinct(8)})
	want := total(t, s)
	require.NoError(t, s.Close())
	m := migrator(t, databaseURL)
	for version := int64(0); version != 13; {
		taken, some, err := m.Down(t.Context())
		require.NoError(t, err)
		require.True(t, some)
		version = taken.Version
	}
	require.Equal(t, 3, value[int](t, conn, `SELECT count(*) FROM dedup_stat`))
	require.Equal(t, want.Received, value[int64](t, conn, `SELECT sum(received)::bigint FROM dedup_stat`))
	require.Equal(t, want.NonV7, value[int64](t, conn, `SELECT sum(non_v7)::bigint FROM dedup_stat`))
	require.Equal(t, want.IDAheadMax.Milliseconds(), value[int64](t, conn, `SELECT max(id_ahead_max_ms) FROM dedup_stat`))
}
