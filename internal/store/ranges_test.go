package store_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// shortly is how long these tests wait for a lock that is not to be had.
const shortly = 100 * time.Millisecond

// keeping returns the session that forgets, with the lead and the lock of a turn.
func keeping(t testing.TB, databaseURL string) *store.Ranges {
	t.Helper()
	r, err := store.NewRanges(storetest.Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	led, err := r.Lead(t.Context())
	require.NoError(t, err)
	require.True(t, led)
	begun, err := r.Begin(t.Context())
	require.NoError(t, err)
	require.True(t, begun)
	_, err = r.Leaves(t.Context())
	require.NoError(t, err)
	return r
}

// dayOf is the range of the day that an instant lies in.
func dayOf(at time.Time) domain.Span {
	from := at.UTC().Truncate(24 * time.Hour)
	return domain.Span{From: from, To: from.Add(24 * time.Hour)}
}

// idAt returns a UUID version 7 of an instant.
func idAt(at time.Time) uuid.UUID {
	id := domain.FirstID(at)
	copy(id[6:], uuid.Must(uuid.NewV7()).NodeID())
	random := uuid.New()
	copy(id[8:], random[8:])
	id[6] = 0x70 | byte(rand.IntN(16))
	id[7] = byte(rand.IntN(256))
	return id
}

// sightingsAt returns the first sightings of events of an instant, in the order of their ids.
func sightingsAt(at time.Time, n int) []domain.Sighting {
	s := sightings(n)
	for i := range s {
		s[i].EventID = idAt(at)
	}
	slices.SortFunc(s, func(a, b domain.Sighting) int { return slices.Compare(a.EventID[:], b.EventID[:]) })
	return s
}

func attach(t testing.TB, r *store.Ranges, span domain.Span) int {
	t.Helper()
	moved, err := r.Attach(t.Context(), span, 1000, shortly)
	require.NoError(t, err)
	return moved
}

// leafOf returns the table that holds ids of an instant.
func leafOf(t testing.TB, r *store.Ranges, at time.Time) (found domain.Leaf) {
	t.Helper()
	leaves, err := r.Leaves(t.Context())
	require.NoError(t, err)
	for _, leaf := range leaves {
		if !leaf.Default && leaf.Span.Contains(at) {
			return leaf
		}
		if leaf.Default && found.Table == "" {
			found = leaf
		}
	}
	return found
}

// openClaim begins a batch that claims and stays open; the returned function commits it.
func openClaim(t *testing.T, s *store.Store, events []domain.Sighting) (commit func()) {
	t.Helper()
	claimed, release, ended := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, events)
			claimed <- err
			<-release
			return err
		})
	}()
	require.NoError(t, <-claimed)
	return func() {
		close(release)
		require.NoError(t, <-ended)
	}
}

func TestARangeTakesTheRowsOfItsDayAndWhatTheDefaultPartitionHoldsOfIt(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	before, within, after := sightingsAt(epoch.Add(-24*time.Hour), 10), sightingsAt(epoch, 10), sightingsAt(epoch.Add(24*time.Hour), 10)
	bounds := []domain.Sighting{{EventID: domain.FirstID(dayOf(epoch).From)}, {EventID: domain.FirstID(dayOf(epoch).To)}}
	for _, events := range [][]domain.Sighting{before, within, after, bounds} {
		claim(t, s, events)
	}
	lying, err := r.Lying(t.Context(), dayOf(epoch), 100)
	require.NoError(t, err)
	require.Equal(t, 11, lying)
	conn := storetest.Conn(t, databaseURL)
	was := value[string](t, conn, `SELECT array_agg(p ORDER BY event_id)::text FROM processed_event AS p`)

	require.Equal(t, 11, attach(t, r, dayOf(epoch)))
	require.Equal(t, was, value[string](t, conn, `SELECT array_agg(p ORDER BY event_id)::text FROM processed_event AS p`), "every row as it was")
	require.Equal(t, 11, value[int](t, conn, `SELECT count(*) FROM processed_event_20260314_20260315`))
	require.Equal(t, 21, value[int](t, conn, `SELECT count(*) FROM processed_event_default`))
	leaf := leafOf(t, r, epoch)
	require.True(t, leaf.Ours)
	require.False(t, leaf.Empty)
	require.Equal(t, dayOf(epoch), leaf.Span)
	for _, events := range [][]domain.Sighting{before, within, after, bounds} {
		require.Len(t, claim(t, s, events).Earlier, len(events), "all of them are known still")
	}
	claim(t, s, sightingsAt(epoch, 5))
	require.Equal(t, 16, value[int](t, conn, `SELECT count(*) FROM processed_event_20260314_20260315`), "new rows find their range")

	indexes := `SELECT count(*) FROM pg_index WHERE indrelid = $1::regclass`
	require.Equal(t, value[int](t, conn, indexes, "processed_event_default"), value[int](t, conn, indexes, leaf.Table), "it has the indexes of the others")
}

func TestTooManyRowsAreNotMoved(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	claim(t, s, sightingsAt(epoch, 11))
	_, err := r.Attach(t.Context(), dayOf(epoch), 10, shortly)
	require.ErrorIs(t, err, domain.ErrCrowded)
	require.True(t, leafOf(t, r, epoch).Default)
	moved, err := r.Attach(t.Context(), dayOf(epoch), 11, shortly)
	require.NoError(t, err)
	require.Equal(t, 11, moved)
}

// The claim has found its way to the default partition, and waits there for the move. Its
// rows are not there any more when it may go on.
func TestAClaimThatWaitsForAMoveFailsByTheConstraintAndIsExactWhenItIsRunAgain(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	known := sightingsAt(epoch, 3)
	claim(t, s, known)
	again := append(sightingsAt(epoch, 3), known...)
	slices.SortFunc(again, func(a, b domain.Sighting) int { return slices.Compare(a.EventID[:], b.EventID[:]) })
	other := openClaim(t, s, sightingsAt(epoch, 1)) // keeps the move waiting, and so the claim behind it
	moved := make(chan error, 1)
	go func() {
		_, err := r.Attach(t.Context(), dayOf(epoch), 1000, patience)
		moved <- err
	}()
	conn := storetest.Conn(t, databaseURL)
	awaitWaiters(t, conn, 1)
	claimed := make(chan error, 1)
	go func() {
		claimed <- s.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, again)
			return err
		})
	}()
	awaitWaiters(t, conn, 2)
	other()
	require.NoError(t, <-moved)
	err := <-claimed
	require.Equal(t, "23514", stateOf(err))
	require.NotErrorIs(t, err, domain.ErrData, "so that it is run again")
	earlier := claim(t, s, again).Earlier
	require.Len(t, earlier, 3)
	for _, k := range known {
		require.Equal(t, k.Source, earlier[k.EventID].Source)
	}
	require.Equal(t, 7, value[int](t, conn, `SELECT count(*) FROM processed_event_20260314_20260315`))
}

func TestAnOpenBatchOfAnotherDayIsInNobodysWay(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	for _, d := range []time.Duration{0, 24 * time.Hour} {
		attach(t, r, dayOf(epoch.Add(d)))
	}
	claim(t, s, sightingsAt(epoch, 10))
	commit := openClaim(t, s, sightingsAt(epoch.Add(24*time.Hour), 10))

	require.NoError(t, r.Empty(t.Context(), leafOf(t, r, epoch), shortly), "emptying takes no lock that it holds")
	require.True(t, leafOf(t, r, epoch).Empty)
	attach(t, r, dayOf(epoch.Add(48*time.Hour))) // nor does attaching
	require.ErrorIs(t, r.Drop(t.Context(), leafOf(t, r, epoch), shortly), domain.ErrBusy)
	commit()
	require.NoError(t, r.Drop(t.Context(), leafOf(t, r, epoch), shortly))
	require.True(t, leafOf(t, r, epoch).Default, "it is gone")
}

func TestWhatBatchesHoldIsLeftAloneAfterAShortWait(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	attach(t, r, dayOf(epoch))
	inRange, inDefault := openClaim(t, s, sightingsAt(epoch, 1)), openClaim(t, s, []domain.Sighting{{EventID: uuid.New()}})
	require.ErrorIs(t, r.Empty(t.Context(), leafOf(t, r, epoch), shortly), domain.ErrBusy)
	_, err := r.Attach(t.Context(), dayOf(epoch.Add(24*time.Hour)), 1000, shortly)
	require.ErrorIs(t, err, domain.ErrBusy, "the default partition is in use")
	inRange()
	inDefault()
	require.NoError(t, r.Empty(t.Context(), leafOf(t, r, epoch), shortly))
	attach(t, r, dayOf(epoch.Add(24*time.Hour)))
	led, err := r.Lead(t.Context())
	require.NoError(t, err)
	require.True(t, led, "a lock that is not to be had costs no lead")
}

// Whoever waits for a lock on the whole table holds up all who come behind.
func TestADropThatWaitsHoldsUpABatchNoLongerThanItsOwnPatience(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	attach(t, r, dayOf(epoch))
	conn := storetest.Conn(t, databaseURL)
	leaf := leafOf(t, r, epoch)
	commit := openClaim(t, s, sightings(1))
	dropped := make(chan error, 1)
	go func() { dropped <- r.Drop(t.Context(), leaf, 300*time.Millisecond) }()
	awaitWaiters(t, conn, 1)
	begun := time.Now()
	claim(t, s, sightings(1))
	require.Less(t, time.Since(begun), 5*time.Second, "it did not wait for the open batch")
	require.ErrorIs(t, <-dropped, domain.ErrBusy)
	commit()
}

// Where many ids are asked for at a time, as when a topic is read again, a plan for any
// list of ids looks cheap; it would lock every range there is, until the batch ends.
func TestABatchHoldsNoLockOnARangeThatItDoesNotTouch(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	c := storetest.Config(databaseURL)
	c.MaxTransactions = 1 // one session, so that its plans grow old
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := keeping(t, databaseURL)
	for d := range 4 {
		attach(t, r, dayOf(epoch.Add(time.Duration(d)*24*time.Hour)))
	}
	known := sightingsAt(epoch.Add(2*24*time.Hour), 400)
	claim(t, s, known)
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `ANALYZE processed_event`)
	ids := make([]uuid.UUID, len(known))
	for i := range known {
		ids[i] = known[i].EventID
	}
	again := func() {
		within(t, s, func(tx domain.Tx) error {
			claimed, err := tx.Claim(t.Context(), group, known)
			require.Len(t, claimed.Earlier, len(known))
			return errors.Join(err, tx.Unclaim(t.Context(), "another-group", ids))
		})
	}
	for range 20 {
		again()
	}
	var locked string
	within(t, s, func(tx domain.Tx) error {
		claimed, err := tx.Claim(t.Context(), group, known)
		require.Len(t, claimed.Earlier, len(known))
		require.NoError(t, tx.Unclaim(t.Context(), "another-group", ids))
		locked = value[string](t, conn, `
SELECT string_agg(DISTINCT c.relname, ' ' ORDER BY c.relname) FROM pg_locks AS l
JOIN pg_class AS c ON c.oid = l.relation JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE a.application_name = 'billing' AND a.datname = current_database() AND c.relkind IN ('r', 'p')`)
		return err
	})
	require.Equal(t, "processed_event processed_event_20260316_20260317", locked)
}

func TestARangeWithAnUnfinishedIntentIsNotEmptied(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	attach(t, r, dayOf(epoch))
	span := dayOf(epoch)
	var unfinished []uuid.UUID
	for _, state := range []domain.IntentState{domain.Waiting, domain.Calling, domain.UnknownOutcome, domain.Answered, domain.Parked, domain.Held} {
		event := sightingsAt(epoch, 1)
		claim(t, s, event)
		put(t, s, aWaiting(func(in *domain.Intent) { in.EventID = event[0].EventID }, inState(state)))
		if state != domain.Parked && state != domain.Held {
			unfinished = append(unfinished, event[0].EventID)
		}
	}
	put(t, s, aWaiting(func(in *domain.Intent) { in.EventID = domain.FirstID(span.To) })) // another day's
	slices.SortFunc(unfinished, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for len(unfinished) > 0 {
		n, first, err := r.Unfinished(t.Context(), span, 100)
		require.NoError(t, err)
		require.Equal(t, len(unfinished), n)
		require.Equal(t, unfinished[0], first)
		require.ErrorIs(t, r.Empty(t.Context(), leafOf(t, r, epoch), shortly), domain.ErrMoved)
		require.False(t, leafOf(t, r, epoch).Empty)
		execute(t, storetest.Conn(t, databaseURL), `DELETE FROM charge_intent WHERE event_id = $1`, first)
		unfinished = unfinished[1:]
	}
	require.NoError(t, r.Empty(t.Context(), leafOf(t, r, epoch), shortly), "dead letters do not keep it")
	require.True(t, leafOf(t, r, epoch).Empty)
}

func TestARangeThatGotRowsAgainIsNotDropped(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	attach(t, r, dayOf(epoch))
	late := openClaim(t, s, sightingsAt(epoch, 1)) // not to be seen before the lock
	dropped := make(chan error, 1)
	leaf := leafOf(t, r, epoch)
	go func() { dropped <- r.Drop(t.Context(), leaf, patience) }()
	awaitWaiters(t, storetest.Conn(t, databaseURL), 1)
	late()
	require.ErrorIs(t, <-dropped, domain.ErrNotEmpty)
	require.ErrorIs(t, r.Drop(t.Context(), leaf, shortly), domain.ErrNotEmpty)
	require.NoError(t, r.Empty(t.Context(), leaf, shortly))
	require.NoError(t, r.Drop(t.Context(), leaf, shortly))
}

func TestRowsAreDeletedByTheTimeTheyWereWrittenInBoundedSteps(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	conn := storetest.Conn(t, databaseURL)
	leaf := leafOf(t, r, epoch)
	all := sightings(120)
	claim(t, s, all)
	for i, e := range all { // ten at each of twelve moments, an hour apart
		execute(t, conn, `UPDATE processed_event SET processed_at = $1 WHERE event_id = $2`, epoch.Add(time.Duration(i/10)*time.Hour), e.EventID)
	}
	kept := all[15]
	put(t, s, aWaiting(func(in *domain.Intent) { in.EventID = kept.EventID }))
	put(t, s, aWaiting(func(in *domain.Intent) { in.EventID = all[25].EventID }, inState(domain.Held)))

	before := epoch.Add(6 * time.Hour)
	found, err := r.Overdue(t.Context(), leaf, before, 1000)
	require.NoError(t, err)
	require.Equal(t, domain.Overdue{
		Rows: 59, Oldest: epoch, Kept: 1, KeptFirst: kept.EventID, KeptSince: epoch.Add(time.Hour),
	}, found)
	var steps []int
	for from := found.Oldest; ; {
		n, next, err := r.Delete(t.Context(), leaf, from, before, 7) // fewer than are of one moment
		require.NoError(t, err)
		if n == 0 {
			break
		}
		steps = append(steps, n)
		from = next
	}
	require.Equal(t, []int{7, 7, 7, 7, 7, 7, 7, 7, 3}, steps)
	require.Equal(t, 61, value[int](t, conn, `SELECT count(*) FROM processed_event`))
	require.Equal(t, 1, value[int](t, conn, `SELECT count(*) FROM processed_event WHERE processed_at < $1`, before), "the unfinished intent's row")
	require.Contains(t, claim(t, s, []domain.Sighting{kept}).Earlier, kept.EventID)
}

// With a constraint that says so, a large default partition is not looked through while
// its claims wait.
func TestALargeDefaultPartitionIsSparedForDaysAhead(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	r.SetScanMax(0)
	tomorrow, yesterday := dayOf(time.Now().Add(24*time.Hour)), dayOf(time.Now().Add(-24*time.Hour))
	claim(t, s, sightingsAt(epoch, 10))

	require.Zero(t, attach(t, r, tomorrow))
	_, err := r.Attach(t.Context(), yesterday, 1000, shortly)
	require.ErrorIs(t, err, domain.ErrCrowded, "claims of days that are here could not wait for the constraint to go")
	constraints := `SELECT count(*) FROM pg_constraint WHERE conrelid = 'processed_event_default'::regclass AND conname LIKE '%not%'`
	conn := storetest.Conn(t, databaseURL)
	require.Equal(t, 1, value[int](t, conn, constraints), "it stands as the range's fence")

	later := dayOf(time.Now().Add(48 * time.Hour))
	claim(t, s, sightingsAt(later.From, 1))
	_, err = r.Attach(t.Context(), later, 1000, shortly)
	require.ErrorIs(t, err, domain.ErrCrowded, "a row of it lies there")
	require.Equal(t, 1, value[int](t, conn, constraints))
}

func TestAnAttachThatFailsBehindTheConstraintTakesItBack(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	r.SetScanMax(0)
	claim(t, s, sightingsAt(epoch, 1))
	tomorrow := dayOf(time.Now().Add(24 * time.Hour))
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `CREATE TABLE `+pgx.Identifier{"processed_event_" + tomorrow.From.Format("20060102") + "_" + tomorrow.To.Format("20060102")}.Sanitize()+` (somebody_elses int)`)
	_, err := r.Attach(t.Context(), tomorrow, 1000, shortly)
	require.Equal(t, "42P07", stateOf(err))
	require.Zero(t, value[int](t, conn, `SELECT count(*) FROM pg_constraint WHERE conrelid = 'processed_event_default'::regclass AND conname LIKE '%not%'`))
	claim(t, s, sightingsAt(tomorrow.From, 1)) // goes to the default partition
}

func TestLeavesThatAreNotOursAreToldApart(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	id := func(text string) string { at, _ := time.Parse(time.DateTime, text); return domain.FirstID(at).String() }
	for name, bounds := range map[string]string{
		"ancient":                           `FROM (MINVALUE) TO ('` + id("2026-01-01 06:00:00") + `')`,
		"processed_event_20260110_20260111": `FROM ('` + id("2026-01-10 00:00:00") + `') TO ('` + id("2026-01-11 12:00:00") + `')`,
		"processed_event_20260120_20260121": `FROM ('` + id("2026-01-20 00:00:00") + `') TO ('` + id("2026-01-21 00:00:00") + `')`,
		"odd":                               `FROM ('019d0000-0000-7000-8000-000000000001') TO ('019d0000-0000-7000-8000-000000000002')`,
		"far":                               `FROM ('f0000000-0000-0000-0000-000000000000') TO (MAXVALUE)`,
	} {
		execute(t, conn, `CREATE TABLE `+name+` PARTITION OF processed_event FOR VALUES `+bounds)
	}
	leaves, err := keeping(t, databaseURL).Leaves(t.Context())
	require.NoError(t, err)
	found := map[string]string{}
	for _, l := range leaves {
		if l.Default {
			continue
		}
		found[l.Table] = l.Span.From.Format(time.RFC3339Nano) + " " + l.Span.To.Format(time.RFC3339Nano)
		if l.Ours {
			found[l.Table] += " ours"
		}
	}
	require.Equal(t, map[string]string{
		"ancient":                           "1970-01-01T00:00:00Z 2026-01-01T06:00:00Z",
		"processed_event_20260110_20260111": "2026-01-10T00:00:00Z 2026-01-11T12:00:00Z",
		"processed_event_20260120_20260121": "2026-01-20T00:00:00Z 2026-01-21T00:00:00Z ours",
		"odd":                               "2026-03-18T08:11:33.248Z 2026-03-18T08:11:33.249Z",
		"far":                               "9999-12-31T00:00:00Z 9999-12-31T00:00:00Z",
	}, found)
}

func TestOneInstanceForgetsAndAnotherWhenItsSessionDies(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	first := keeping(t, databaseURL)
	second, err := store.NewRanges(storetest.Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	for range 3 {
		led, err := second.Lead(t.Context())
		require.NoError(t, err)
		require.False(t, led)
	}
	begun, err := second.Begin(t.Context())
	require.NoError(t, err)
	require.False(t, begun, "the first one's turn is under way")
	require.NoError(t, first.End(t.Context()))
	begun, err = second.Begin(t.Context())
	require.NoError(t, err)
	require.True(t, begun, "a turn by hand needs no lead")
	begun, err = first.Begin(t.Context())
	require.NoError(t, err)
	require.False(t, begun)
	require.NoError(t, second.End(t.Context()))

	conn := storetest.Conn(t, databaseURL)
	require.True(t, value[bool](t, conn, `SELECT pg_terminate_backend(l.pid) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
		WHERE l.locktype = 'advisory' AND a.datname = current_database() AND a.application_name = 'billing-retention'`))
	_, err = first.Attach(t.Context(), dayOf(epoch), 1, shortly)
	require.Error(t, err, "it has lost its session")
	require.ErrorIs(t, first.Empty(t.Context(), domain.Leaf{}, shortly), store.ErrNotKeeping, "and does nothing more")
	require.Eventually(t, func() bool {
		led, err := second.Lead(t.Context())
		require.NoError(t, err)
		return led
	}, patience, 10*time.Millisecond)
	led, err := first.Lead(t.Context())
	require.NoError(t, err)
	require.False(t, led)
}

// A process that is stopped between two statements, or whose network is gone, may hold the lock
// that every batch needs.
func TestALeaderThatStandsStillHoldsBatchesUpForSecondsOnly(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	err := r.On(t.Context(), "stand still", func(ctx context.Context, conn *sql.Conn) error {
		tx, err := conn.BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(ctx, `LOCK TABLE ONLY processed_event IN ACCESS EXCLUSIVE MODE`)
		require.NoError(t, err)
		claim(t, s, sightings(1)) // it would wait for five seconds, and fail
		return tx.Commit()
	})
	require.Error(t, err, "it has lost its session")
}

func TestAChoreRunsOnTheSessionAndCostsItOnlyWhenItBreaksIt(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	sessionOf := func() (pid int) {
		require.NoError(t, r.On(t.Context(), "ask", func(ctx context.Context, conn *sql.Conn) error {
			return conn.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
		}))
		return pid
	}
	pid := sessionOf()
	err := r.On(t.Context(), "a chore", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `SELECT 1/0`)
		return err
	})
	require.Equal(t, "22012", stateOf(err))
	require.ErrorContains(t, err, "a chore: ")
	require.Equal(t, pid, sessionOf(), "the session lives")

	err = r.On(t.Context(), "a chore", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	require.Error(t, err)
	require.ErrorIs(t, r.On(t.Context(), "a chore", nil), store.ErrNotKeeping)
	require.Eventually(t, func() bool {
		begun, err := r.Begin(t.Context())
		require.NoError(t, err)
		return begun
	}, patience, 10*time.Millisecond, "another session has the lock once the first one is gone")
	require.NotEqual(t, pid, sessionOf())
}

func TestTheReportOfTheLatestTurnIsKeptForAllToShow(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	_, found, err := s.Retention(t.Context())
	require.NoError(t, err)
	require.False(t, found)
	r := keeping(t, databaseURL)
	report := domain.RetentionReport{
		StartedAt: epoch, FinishedAt: epoch.Add(time.Second), Instance: "billing-1", Mode: domain.RetainByPartition, Width: "day", Retention: 168 * time.Hour,
		Ranges: []domain.RetentionRange{{Span: dayOf(epoch), Table: "processed_event_20260314_20260315", Rows: 7, State: domain.RangeBlocked, Why: "because"}},
		Next:   &domain.RetentionNext{Span: dayOf(epoch), At: epoch}, Chores: []domain.ChoreReport{{Name: "letters", Removed: 3, Took: time.Second}},
	}
	require.NoError(t, r.Save(t.Context(), report))
	got, found, err := s.Retention(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	report.SucceededAt = report.FinishedAt
	require.Equal(t, report, got)

	failed := report
	failed.FinishedAt, failed.SucceededAt, failed.Error = epoch.Add(time.Minute), time.Time{}, "no"
	require.NoError(t, r.Save(t.Context(), failed))
	got, _, err = s.Retention(t.Context())
	require.NoError(t, err)
	require.Equal(t, report.FinishedAt, got.SucceededAt, "that of the turn before")
	require.Equal(t, "no", got.Error)
	require.ErrorIs(t, errors.Join(r.Resign(), r.Save(t.Context(), report)), store.ErrNotKeeping)
}
