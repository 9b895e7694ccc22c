package retention_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
	"example.com/billing/internal/store"
)

// running runs a keeper until the test ends or the returned function is called.
func (w *world) running(k *retention.Keeper) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, patience, 2*time.Millisecond, what)
}

// openBatch claims events in a transaction that stays open until it is committed.
func (w *world) openBatch(ids ...uuid.UUID) (commit func()) {
	w.t.Helper()
	sightings := make([]domain.Sighting, len(ids))
	for i, id := range ids {
		sightings[i] = domain.Sighting{EventID: id, Source: domain.Coordinates{Topic: "orders.confirmed"}}
	}
	claimed, release, ended := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- w.store.Transact(w.t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(w.t.Context(), group, sightings)
			claimed <- err
			<-release
			return err
		})
	}()
	require.NoError(w.t, <-claimed)
	return func() {
		close(release)
		require.NoError(w.t, <-ended)
	}
}

func signed(name string) func(*retention.Config, *retention.Parts) {
	return func(c *retention.Config, _ *retention.Parts) { c.Instance = name }
}

func TestOfTwoInstancesOneDoesItAndTheOtherWhenItIsGone(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, signed("one"))
	_, two := w.another(domain.RetainByPartition, signed("two"))
	stopOne := w.running(w.keeper)
	w.eventually("one leads", func() bool { return w.keeper.Status().Leading && w.keeper.Status().Report.Attached > 0 })
	w.running(two)
	by := func() string { r, _, err := w.store.Retention(t.Context()); require.NoError(t, err); return r.Instance }
	require.Equal(t, "one", by())
	locks := `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	w.eventually("its turn is over: what stays is the lock of the lead", func() bool { return w.count(locks) == 1 })
	require.False(t, two.Status().Leading)

	stopOne()
	w.eventually("two leads, and begins with a turn", func() bool { return two.Status().Leading && by() == "two" })
	require.False(t, w.keeper.Status().Leading)
}

func TestALeaderThatLosesItsSessionNoticesAndIsSucceeded(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, signed("one"))
	w.running(w.keeper)
	w.eventually("one leads", func() bool { return w.keeper.Status().Leading })
	_, two := w.another(domain.RetainByPartition, signed("two"))
	w.running(two)
	// Each learns of its loss a moment later, and the first one may be the quicker again: then once more.
	w.eventually("the second one leads, and the first one knows that it does not", func() bool {
		first, second := w.keeper.Status().Leading, two.Status().Leading
		w.execute(`SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
			WHERE l.locktype = 'advisory' AND a.datname = current_database() AND $1`, first && !second)
		return second && !first
	})
}

func TestTurnsComeByTheClockAndByHandInBetween(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, signed("service"))
	w.running(w.keeper)
	last := func() domain.RetentionReport {
		r, _, err := w.store.Retention(t.Context())
		require.NoError(t, err)
		return r
	}
	w.eventually("the first turn", func() bool { return last().Attached > 0 })
	_, hand := w.another(domain.RetainByPartition, signed("by hand"))
	w.clock.add(time.Second)
	report, err := hand.Once(t.Context(), retention.ByHand{}, patience)
	require.NoError(t, err)
	require.Zero(t, report.Attached)
	require.Equal(t, "by hand", last().Instance)
	require.True(t, w.keeper.Status().Leading)
	w.clock.add(2 * time.Minute)
	w.eventually("the service's next turn", func() bool { return last().Instance == "service" })
}

func TestATurnThatDoesNotEndIsWaitedForAWhileOnly(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	w := setup(t, domain.RetainByPartition, func(_ *retention.Config, p *retention.Parts) {
		p.Chores = []retention.Chore{chore{"slow", func(context.Context) (int64, error) {
			close(begun)
			<-release
			return 0, nil
		}}}
	})
	w.running(w.keeper)
	<-begun
	_, hand := w.another(domain.RetainByPartition)
	_, err := hand.Once(t.Context(), retention.ByHand{}, 20*time.Millisecond)
	require.ErrorIs(t, err, retention.ErrUnderWay)
	close(release)
	_, err = hand.Once(t.Context(), retention.ByHand{}, patience)
	require.NoError(t, err)
}

// A chore that fails, and one that costs the session, keep no other from its work.
func TestEachChoreFailsByItself(t *testing.T) {
	t.Parallel()
	for name, leading := range map[string]bool{"by hand": false, "in the service": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ranges *store.Ranges
			on := func(statement string) func(context.Context) (int64, error) {
				return func(ctx context.Context) (n int64, err error) {
					return 7, ranges.On(ctx, "chore", func(ctx context.Context, conn *sql.Conn) error {
						_, err := conn.ExecContext(ctx, statement)
						return err
					})
				}
			}
			w := setup(t, domain.RetainByPartition, func(_ *retention.Config, p *retention.Parts) {
				p.Chores = []retention.Chore{
					chore{"bad", on(`SELECT 1/0`)},
					chore{"worse", on(`SELECT pg_terminate_backend(pg_backend_pid())`)},
					chore{"good", on(`CREATE TABLE proof AS SELECT 1`)},
				}
			})
			ranges = w.ranges
			var report domain.RetentionReport
			if leading {
				w.running(w.keeper)
				w.eventually("a turn", func() bool { report = w.keeper.Status().Report; return !report.FinishedAt.IsZero() })
			} else {
				var err error
				report, err = w.keeper.Once(t.Context(), retention.ByHand{}, patience)
				require.ErrorContains(t, err, "division by zero")
			}
			require.Len(t, report.Chores, 3)
			require.Contains(t, report.Chores[0].Error, "division by zero")
			require.NotEmpty(t, report.Chores[1].Error)
			require.Equal(t, domain.ChoreReport{Name: "good", Removed: 7}, report.Chores[2])
			require.Equal(t, 1, w.count(`SELECT count(*) FROM proof`))
			require.Contains(t, report.Error, "division by zero")
			require.Contains(t, report.Error, "bad: ")
			w.eventually("the report is there for all to see", func() bool {
				saved, some, err := w.store.Retention(t.Context())
				require.NoError(t, err)
				return some && saved.Error == report.Error && saved.SucceededAt.IsZero()
			})
		})
	}
}

func TestLateRowsOfAnEmptiedRangeAreEmptiedAgain(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	w.turn()
	w.processed(noon, 5)
	hold := w.openBatch(idAt(noon.Add(30 * day))) // whose lock on the table keeps the range from being dropped
	w.clock.add(keepFor + day)
	report := w.turn()
	require.Equal(t, 1, report.Emptied)
	require.Zero(t, report.Dropped)
	of := rangeOf(t, &report, noon)
	require.Equal(t, domain.RangeEmptied, of.State)
	require.Contains(t, of.Why, "dropped when a short lock allows")

	late := w.processed(noon, 2)
	report = w.turn()
	require.Equal(t, 1, report.Emptied, "though it was emptied before")
	require.Zero(t, w.knows(late...))
	hold()
	w.clock.add(2 * time.Hour)
	report = w.turn()
	require.Equal(t, domain.RangeDropped, rangeOf(t, &report, noon).State)
	require.Zero(t, w.turn().Emptied)
}

// placed counts the tries to drop.
type placed struct {
	retention.Table
	drops int
}

func (p *placed) Drop(ctx context.Context, leaf domain.Leaf, wait time.Duration) error {
	p.drops++
	return p.Table.Drop(ctx, leaf, wait)
}

func TestADropThatIsInVainIsTriedAFewTimesAndThenSeldom(t *testing.T) {
	t.Parallel()
	table := &placed{}
	w := setup(t, domain.RetainByPartition, func(c *retention.Config, p *retention.Parts) {
		c.Patience = time.Millisecond
		table.Table, p.Table = p.Table, table
	})
	w.turn()
	hold := w.openBatch(uuid.New())
	w.clock.add(keepFor + 2*day) // two ranges are due, and empty
	tries := func() int { table.drops = 0; w.turn(); return table.drops }
	require.Equal(t, 3, tries(), "of all ranges together")
	for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		w.clock.add(time.Duration(minutes)*time.Minute - time.Second)
		require.Zero(t, tries(), "not before %d minutes", minutes)
		w.clock.add(time.Second)
		require.Equal(t, 3, tries())
	}
	hold()
	w.clock.add(time.Hour)
	w.turn()
	require.Equal(t, 11+1, w.count(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'processed_event'::regclass`), "what is past is dropped")
}

func TestARangeOfWhichTooMuchLiesElsewhereIsLeftAndTheOthersAreAttached(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, func(c *retention.Config, _ *retention.Parts) { c.MoveMax = 4 })
	crowded, few := w.processed(noon, 5), w.processed(noon.Add(-day), 4)
	report := w.turn()
	require.Equal(t, 10, report.Attached)
	require.EqualValues(t, 4, report.Moved)
	missing := rangeOf(t, &report, noon)
	require.Equal(t, domain.RangeMissing, missing.State)
	require.Contains(t, missing.Why, "more than 4 rows of it")
	require.Equal(t, 9, w.knows(append(crowded, few...)...))
	w.clock.add(keepFor + day)
	w.turn()
	require.Zero(t, w.knows(crowded...), "it is cleaned row by row")
}

func TestBatchesThatHoldTheDefaultPartitionPutAttachingOff(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, func(c *retention.Config, _ *retention.Parts) { c.Patience = time.Millisecond })
	commit := w.openBatch(uuid.New())
	report := w.turn()
	require.Zero(t, report.Attached)
	require.Equal(t, map[domain.RangeState]int{domain.RangeMissing: 11}, states(&report))
	require.Contains(t, rangeOf(t, &report, noon).Why, "tried again in the next turn")
	commit()
	require.Equal(t, 11, w.turn().Attached)
}

func TestARangeThatCannotBeAttachedIsToldAndTheOthersAre(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	w.execute(`CREATE TABLE processed_event_20261130_20261201 (somebody_elses int)`)
	report, err := w.keeper.Once(t.Context(), retention.ByHand{}, patience)
	require.Error(t, err)
	require.Equal(t, 10, report.Attached)
	require.Equal(t, domain.RangeMissing, rangeOf(t, &report, noon).State)
	require.Contains(t, report.Error, "already exists")
}

// What is the matter with one range is the matter with all of them.
func TestATurnTellsOfManyErrorsTheFirst(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	for d := range 8 {
		from := noon.Add(time.Duration(d) * day)
		w.execute(fmt.Sprintf(`CREATE TABLE processed_event_%s_%s (somebody_elses int)`, from.Format("20060102"), from.Add(day).Format("20060102")))
	}
	report, err := w.keeper.Once(t.Context(), retention.ByHand{}, patience)
	require.Error(t, err)
	require.Equal(t, 3, report.Attached)
	require.Equal(t, 5, strings.Count(report.Error, "already exists"))
	require.Contains(t, report.Error, "and 3 more")
}

func TestDeletesGoInStepsAndWithinTheirTime(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByDelete, func(c *retention.Config, _ *retention.Parts) { c.Batch = 10 })
	w.processed(noon, 95)
	w.clock.add(keepFor + time.Second)
	require.EqualValues(t, 95, w.turn().Deleted)

	_, hasty := w.another(domain.RetainByDelete, func(c *retention.Config, _ *retention.Parts) { c.Batch, c.Budget = 10, time.Nanosecond })
	w.rows(noon, uuid.New(), uuid.New())
	report, err := hasty.Once(t.Context(), retention.ByHand{}, patience)
	require.NoError(t, err)
	require.Zero(t, report.Deleted, "the rest is for another turn")
}

// By the brokers as seldom as possible: where nothing is due they are not asked at all.
func TestTheBrokersAreAskedOnceForATurnAndNotWhenNothingIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	w.turn()
	for d := range 3 {
		w.processed(noon.Add(time.Duration(d)*day), 1)
	}
	require.Zero(t, w.reader.asked)
	w.clock.add(keepFor + 4*day)
	require.Equal(t, 3, w.turn().Emptied)
	require.Equal(t, 1, w.reader.asked)

	// Where something is unread, each range is asked for: those of before it go.
	for d := range 3 {
		w.processed(noon.Add(time.Duration(4+d)*day), 1)
	}
	w.clock.add(4 * day)
	w.reader.say(noon.Add(5*day+time.Hour), nil)
	report := w.turn()
	require.Equal(t, domain.RangeBlocked, rangeOf(t, &report, noon.Add(5*day)).State)
	require.Equal(t, domain.RangeBlocked, rangeOf(t, &report, noon.Add(6*day)).State)
	require.Equal(t, domain.RangeDropped, rangeOf(t, &report, noon.Add(4*day)).State, "nothing of before its end is unread")
	require.Equal(t, noon.Add(6*day).Truncate(day).Add(keepFor), report.BlockedSince, "since the first of them has been due")
}

func TestABadConfigurationIsRefusedWithAllComplaints(t *testing.T) {
	t.Parallel()
	_, err := retention.New(retention.Config{Mode: "burn", Width: "hour"}, retention.Parts{})
	require.ErrorContains(t, err, `"burn" is no mode`)
	require.ErrorContains(t, err, `"hour" is none of`)
	require.ErrorContains(t, err, "a bound is not positive")
}

// Without anybody to ask nothing is forgotten.
func TestWithoutAReaderNothingIsForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByDelete, func(_ *retention.Config, p *retention.Parts) { p.Reader = nil })
	w.processed(noon, 1)
	w.clock.add(keepFor + day)
	report := w.turn()
	require.Zero(t, report.Deleted)
	require.Contains(t, report.Default.Why, "there is nobody to ask")
}

// One year of days in which the table is filled at random while turns fail at random:
// every event is known for as long as it is to be, and none for longer than a range.
func TestRandomizedAYearOfTurnsForgetsNothingTooEarlyAndNothingTooLate(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition)
	written := map[uuid.UUID]time.Time{}
	for d := range 60 {
		w.clock.add(time.Duration(18+d%13) * time.Hour)
		now := w.clock.Now()
		if d%20 == 19 {
			width := []retention.Width{retention.Week, retention.Month, retention.Day}[d/20%3]
			_, w.keeper = w.another(domain.RetainByPartition, func(c *retention.Config, _ *retention.Parts) { c.Width = width })
		}
		for _, id := range append(w.processed(now, 2), uuid.New()) {
			written[id] = now
		}
		var strangers []uuid.UUID
		for id := range written {
			if id.Version() == 4 && w.knows(id) == 0 && written[id].Equal(now) {
				strangers = append(strangers, id)
			}
		}
		w.rows(now, strangers...)
		if d%3 == 0 {
			continue // nobody made a turn
		}
		w.turn()
		for id, at := range written {
			age := now.Sub(at)
			switch {
			case age <= keepFor:
				require.Equal(t, 1, w.knows(id), "%s of %s at %s", id, at, now)
			case age > keepFor+31*day || id.Version() == 4:
				require.Zero(t, w.knows(id), "%s of %s at %s", id, at, now)
				delete(written, id)
			}
		}
	}
}

func TestWhoeverWaitsForItFindsTheRangeOfNow(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode domain.RetentionMode) {
		t.Helper()
		w := setup(t, mode)
		block := w.openBatch(uuid.New()) // a first turn that cannot attach
		w.running(w.keeper)
		<-w.keeper.Ready()
		_, two := w.another(mode)
		w.running(two)
		if mode == domain.RetainByPartition {
			require.Never(t, func() bool {
				select {
				case <-two.Ready():
					return true
				default:
					return false
				}
			}, 300*time.Millisecond, 10*time.Millisecond, "there is none yet, and somebody else leads")
		}
		block()
		w.clock.add(2 * time.Minute)
		<-two.Ready()
		require.False(t, two.Status().Leading)
	})
}

// counted counts the questions for the tables.
type counted struct {
	retention.Table
	asked atomic.Int64
}

func (c *counted) Leaves(ctx context.Context) ([]domain.Leaf, error) {
	c.asked.Add(1)
	return c.Table.Leaves(ctx)
}

// As where most ids are of version 4: the range of now is made never, and an instance that does
// not lead must not look for it twenty times a second for as long as it lives.
func TestARangeThatIsNotMadeIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	w := setup(t, domain.RetainByPartition, func(c *retention.Config, _ *retention.Parts) { c.MoveMax = 4 })
	w.processed(noon, 5)
	w.running(w.keeper)
	<-w.keeper.Ready()
	table := &counted{}
	_, two := w.another(domain.RetainByPartition, func(_ *retention.Config, p *retention.Parts) { table.Table, p.Table = p.Table, table })
	w.running(two)
	w.eventually("it looks", func() bool { return table.asked.Load() > 3 })
	select {
	case <-two.Ready():
		require.Fail(t, "there is none")
	default:
	}
	w.clock.add(10 * time.Second)
	w.eventually("it goes on without", func() bool {
		select {
		case <-two.Ready():
			return true
		default:
			return false
		}
	})
	asked := table.asked.Load()
	require.Never(t, func() bool { return table.asked.Load() > asked }, 200*time.Millisecond, 10*time.Millisecond, "nor looks any more")
	require.False(t, two.Status().Leading)
}
