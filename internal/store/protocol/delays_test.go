package protocol_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// seenAgo makes the event's first sighting so old, by the world's clock.
func (w *world) seenAgo(e event, d time.Duration) {
	w.t.Helper()
	w.exec("UPDATE processed_event SET processed_at = $2 WHERE event_id = $1", e.id, w.clock.Now().Add(-d))
}

// Every kind at every bound: what comes at the bound belongs to it, and what comes
// a moment later to the next one.
func TestADuplicateIsCountedByHowLateItCame(t *testing.T) {
	t.Parallel()
	for kind, again := range map[domain.DuplicateKind]func(w *world, e event) domain.Record{
		domain.DuplicateRedelivered: func(_ *world, e event) domain.Record { return e.record },
		domain.DuplicateRepublished: func(w *world, e event) domain.Record { return w.republished(1, e.record) },
		domain.DuplicateConflicting: func(w *world, e event) domain.Record { return w.altered(e, "11.00") },
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := w.event(1, "10.50")
			one.mustBill(a.record)
			want := map[domain.DelayBucket]int64{}
			for _, b := range domain.DelayBuckets() {
				bound, bounded := b.Bound()
				if !bounded {
					continue
				}
				w.seenAgo(a, bound)
				one.mustBill(again(w, a))
				want[b]++
				require.Equal(t, want, w.delays(), "at the bound of %s", b)

				w.seenAgo(a, bound+time.Microsecond)
				one.mustBill(again(w, a))
				want[b+1]++
				require.Equal(t, want, w.delays(), "beyond %s", b)
			}
			require.Equal(t, map[domain.DelayBucket]int64{
				domain.DelayMinute: 1, domain.DelayTenMinutes: 2, domain.DelayHour: 2, domain.DelaySixHours: 2, domain.DelayDay: 2,
				domain.DelayThreeDays: 2, domain.DelayWeek: 2, domain.DelayMonth: 2, domain.DelayLonger: 1,
			}, want)
			var first time.Time
			w.scan("SELECT first_seen_at FROM duplicate_log WHERE kind = $1 ORDER BY id DESC LIMIT 1", []any{string(kind)}, &first)
			require.Equal(t, 30*24*time.Hour+time.Microsecond, w.clock.Now().Sub(first))
			w.balanced()
		})
	}
}

// A twin in the batch of the first one came with it. One that comes with another
// duplicate is as late as that.
func TestTwinsOfABatchAreAsLateAsItsFirstRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.clock.advance(10 * 365 * 24 * time.Hour) // what the database's clock says must not matter
	one.mustBill(a.record, w.republished(1, a.record), a.record, w.altered(a, "11.00"))
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayMinute: 3}, w.delays())
	var first time.Time
	w.scan("SELECT max(first_seen_at) FROM duplicate_log", nil, &first)
	require.True(t, first.Equal(w.clock.Now()))

	w.seenAgo(a, 2*time.Hour)
	one.mustBill(a.record, w.republished(1, a.record), w.republished(2, a.record))
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayMinute: 3, domain.DelaySixHours: 3}, w.delays())
	w.balanced()
}

// The clocks of the database and of a process differ: that is no delay below none.
func TestAFirstSightingAheadOfOurClockIsNoDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.mustBill(a.record)
	w.seenAgo(a, -time.Hour)
	one.mustBill(a.record)
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayMinute: 1}, w.delays())
}

// What deduplication has forgotten is known by the charge or the intent alone: the
// figure that says whether the retention is long enough.
func TestADuplicateOfWhatWasForgottenSaysSo(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]step{"charged": captures, "declined": declines, "unfinished": times, "parked": conflicts, "held": rejects} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := w.event(1, "10.50")
			w.provider.script(a.id, first)
			one.mustBill(a.record)
			w.exec("DELETE FROM processed_event")
			one.mustBill(w.republished(1, a.record), a.record) // the second one with the first, which claims it anew
			require.Equal(t, map[domain.DelayBucket]int64{domain.DelayForgotten: 2}, w.delays())
			var unknown, sources int
			w.scan(`SELECT count(*) FILTER (WHERE first_seen_at IS NULL), count(*) FILTER (WHERE first_offset = $1) FROM duplicate_log`,
				[]any{a.record.Offset}, &unknown, &sources)
			require.Equal(t, 2, unknown)
			require.Equal(t, 2, sources, "the charge or the intent knows the record")

			w.exec("DELETE FROM processed_event")
			one.mustBill(w.altered(a, "11.00"))
			require.Equal(t, map[domain.DelayBucket]int64{domain.DelayForgotten: 3}, w.delays())
			w.balanced()
		})
	}
}

// To another group it is a duplicate that it has not seen before.
func TestWhatAnotherGroupSawFirstHasNoDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.event(1, "10.50")
	w.instance("one").mustBill(a.record)
	two := w.instance("two", inGroup("another"))
	two.mustBill(a.record)
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayForgotten: 1}, w.delays())
	w.exec("UPDATE processed_event SET processed_at = $1 WHERE consumer_group = 'another'", w.clock.Now().Add(-5*time.Minute))
	two.mustBill(a.record)
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayForgotten: 1, domain.DelayTenMinutes: 1}, w.delays())
	w.balanced()
}

// Under a flood the log is a sample, and the counters are exact.
func TestAFloodOfDuplicatesIsCountedWholeAndLoggedInPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.mustBill(a.record)
	var flood []domain.Record
	for range 256 {
		flood = append(flood, w.republished(1, a.record))
	}
	one.mustBill(flood...)
	n := w.counters()
	require.EqualValues(t, 256, n.Republished)
	require.EqualValues(t, 257, n.Received)
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayMinute: 256}, w.delays())
	var lines, last int
	w.scan(`SELECT count(*), max("offset") FROM duplicate_log`, nil, &lines, &last)
	require.Equal(t, domain.MaxLogged, lines)
	require.Equal(t, domain.MaxLogged-1, last, "the first ones")
	one.mustBill(flood[:domain.MaxLogged+1]...)
	w.scan("SELECT count(*) FROM duplicate_log", nil, &lines)
	require.Equal(t, 2*domain.MaxLogged, lines, "of each transaction")
}

// A lost transaction counts and logs nothing; the one that is run again does.
func TestALostTransactionLogsNoDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.mustBill(a.record)
	one.seam.once(mainCommits, func() error { return errLost })
	require.ErrorIs(t, one.bill(a.record), errLost)
	require.Empty(t, w.delays())
	w.balanced()
	one.mustBill(a.record)
	require.Equal(t, map[domain.DelayBucket]int64{domain.DelayMinute: 1}, w.delays())
	w.balanced()
}

// A letter that is replayed and holds a known event was counted when it came.
func TestAReplayedDuplicateIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	a := w.event(1, "10.50")
	one.mustBill(a.record)
	again := a
	again.record = w.republished(1, a.record)
	poison(w, again)
	d.mustReplay(again.record, domain.ResultDuplicate)
	require.Empty(t, w.delays())
	w.balanced()
}

func TestIdsAheadOfTheClockAreCountedWithTheLargestLead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	ahead := func(d time.Duration) uuid.UUID {
		id, ms := uuid.Must(uuid.NewV7()), w.clock.Now().Add(d).UnixMilli()
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
		return id
	}
	one.mustBill(w.eventOf(ahead(-time.Minute), 1, "10.50").record, w.eventOf(ahead(time.Second), 2, "10.50").record, w.eventOf(uuid.New(), 3, "10.50").record)
	n, most := w.leads()
	require.Zero(t, n, "a second is within what clocks differ by")
	require.Zero(t, most)

	late := w.eventOf(ahead(7*time.Second), 4, "10.50")
	one.mustBill(late.record, w.eventOf(ahead(3*time.Second), 5, "10.50").record)
	one.mustBill(late.record, w.eventOf(ahead(5*time.Second), 6, "10.50").record)
	n, most = w.leads()
	require.EqualValues(t, 3, n, "a duplicate is not processed again")
	require.Equal(t, 7*time.Second, most)
	w.balanced()
}

// The story of a finished event still knows when it was intended and first sent.
func TestAChargeKeepsWhenItWasIntendedAndFirstSent(t *testing.T) {
	t.Parallel()
	times := func(w *world, e event) (intended, first, settled *time.Time) {
		w.scan("SELECT intended_at, first_attempt_at, settled_at FROM charge WHERE event_id = $1", []any{e.id}, &intended, &first, &settled)
		return intended, first, settled
	}
	t.Run("in one batch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.event(1, "10.50")
		w.instance("one").mustBill(a.record)
		intended, first, settled := times(w, a)
		require.True(t, intended.Equal(w.clock.Now()))
		require.Equal(t, intended, first)
		require.Equal(t, intended, settled)
	})
	t.Run("by the worker, an hour later", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := mayBeCharged(w, one, 1)
		began := w.clock.Now()
		w.clock.advance(time.Hour)
		one.settle()
		intended, first, settled := times(w, a)
		require.True(t, intended.Equal(began))
		require.True(t, first.Equal(began))
		require.True(t, settled.Equal(began.Add(time.Hour)))
	})
	t.Run("by the worker, when nothing was sent before", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := w.event(1, "10.50")
		w.provider.script(a.id, refuses)
		one.mustBill(a.record)
		began := w.clock.Now()
		w.clock.advance(time.Hour)
		one.settle()
		intended, first, _ := times(w, a)
		require.True(t, intended.Equal(began))
		require.True(t, first.Equal(began.Add(time.Hour)))
	})
	t.Run("a second event of a charged order", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a, b, c := w.event(1, "10.50"), w.event(1, "10.50"), w.event(1, "10.50")
		one.mustBill(a.record, b.record) // b waits for a
		w.clock.advance(time.Hour)
		one.settle()
		w.final(b, "duplicate_order")
		intended, first, _ := times(w, b)
		require.True(t, intended.Equal(w.clock.Now().Add(-time.Hour)))
		require.Nil(t, first, "nothing was sent")

		one.mustBill(c.record)
		w.final(c, "duplicate_order")
		intended, first, _ = times(w, c)
		require.Nil(t, intended, "it never had an intent")
		require.Nil(t, first)
	})
}
