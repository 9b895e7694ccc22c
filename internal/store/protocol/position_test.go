package protocol_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// keeping takes a partition for the instance.
func (w *world) keeping(name string, partition int32) domain.Position {
	w.t.Helper()
	s, err := store.New(storetest.Config(w.url))
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, s.Close()) }()
	at, err := s.Offsets(name).Take(w.t.Context(), group, topic, partition)
	require.NoError(w.t, err)
	return at
}

// billAt bills the records as a batch before which nothing is open, under a taken epoch.
func (i *instance) billAt(taken domain.Position, records ...domain.Record) error {
	pass := domain.Pass{}.Keeping(func(_ context.Context, done []domain.Record) (domain.Position, error) {
		at := taken
		at.Next = done[len(done)-1].Offset + 1
		return at, nil
	})
	return i.Bill(i.life, pass, records)
}

// position returns the partition's position in the book; -1 when there is none.
func (w *world) position(partition int32) (next int64) {
	w.t.Helper()
	w.scan(`SELECT coalesce((SELECT "offset" FROM consumer_offset WHERE consumer_group = $1 AND topic = $2 AND partition = $3), -1)`,
		[]any{group, topic, partition}, &next)
	return next
}

func TestThePositionStandsWithItsBatchAndNotWithoutIt(t *testing.T) {
	t.Parallel()
	for how, lose := range losses() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			taken := w.keeping("one", 0)
			a, b := w.event(1, "10.50"), w.event(2, "7.00")
			require.NoError(t, one.billAt(taken, a.record))
			require.EqualValues(t, 1, w.position(0))
			lose(w, one)
			require.Error(t, one.billAt(taken, b.record))
			var stands int64
			w.scan("SELECT count(*) FROM processed_event WHERE event_id = $1", []any{b.id}, &stands)
			require.Equal(t, 1+stands, w.position(0), "both or none")
			require.NoError(t, one.billAt(taken, b.record))
			require.EqualValues(t, 2, w.position(0))
			w.final(b, "captured")
			w.balanced()
		})
	}
}

// The provider ignores keys here: a second POST would be a second charge.
func TestBatchOfAnEarlierEpochStandsNowhereAndItsAnswersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	zombie, owner := w.instance("zombie"), w.instance("owner")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	old := w.keeping("zombie", 0)
	reached, release := zombie.seam.pauseAt(mainWrites) // the charges are made, and nothing is written
	done := make(chan error, 1)
	go func() { done <- zombie.billAt(old, a.record, b.record) }()
	await(t, reached)
	taken := w.keeping("owner", 0)
	require.Equal(t, domain.NoOffset, taken.Next)
	close(release)
	require.ErrorIs(t, await(t, done), domain.ErrFenced)

	require.Equal(t, domain.NoOffset, w.position(0))
	require.Zero(t, w.counters())
	for _, e := range []event{a, b} {
		require.Empty(t, w.status(e))
		in := w.intent(e)
		require.Equal(t, "answered", in.State)
		require.False(t, in.Claimed)
	}
	require.NoError(t, owner.billAt(taken, a.record, b.record))
	require.EqualValues(t, 2, w.position(0))
	for _, e := range []event{a, b} {
		w.final(e, "captured")
		require.Equal(t, 1, w.provider.postsOf(e.id))
	}
	require.EqualValues(t, 2, w.counters().Captured)
	w.balanced()
}

// A record that the database refuses sends its batch through in parts, and those in smaller
// ones: each moves the position with itself.
func TestPositionFollowsABatchThatGoesOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	taken := w.keeping("one", 0)
	a, b, c := w.event(1, "10.50"), w.event(2, "7.00"), w.event(3, "3.00")
	var tries atomic.Int32
	one.seam.chaos = func(p point) error {
		if p != mainWrites {
			return nil
		}
		if n := tries.Add(1); n == 1 || n == 3 { // all of them; b and c
			return domain.ErrData
		}
		return nil
	}
	require.NoError(t, one.billAt(taken, a.record, b.record, c.record))
	require.EqualValues(t, 5, tries.Load())
	require.EqualValues(t, 3, w.position(0))
	w.balanced()
}

// The old owner has claimed an event that the new one bills too. Were the position
// not the last lock, the new one would hold it while it waits for the claim, and the
// old one would wait for the position before it gives the claim up.
func TestPositionIsTheLastLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, now := w.instance("before"), w.instance("now")
	e := w.event(1, "10.50")
	old := w.keeping("before", 0)
	reached, release := before.seam.pauseAt(mainWrites)
	fenced := make(chan error, 1)
	go func() { fenced <- before.billAt(old, e.record) }()
	await(t, reached)
	taken := w.keeping("now", 0) // not kept waiting
	billed := make(chan error, 1)
	go func() { billed <- now.billAt(taken, e.record) }()
	w.blocked("billing")
	w.exec("SET lock_timeout = '1s'")
	w.exec("UPDATE consumer_offset SET metadata = 'free to be written'")
	close(release)
	require.ErrorIs(t, await(t, fenced), domain.ErrFenced)
	require.NoError(t, await(t, billed))
	w.final(e, "captured")
	require.Equal(t, 1, w.provider.postsOf(e.id))
	w.balanced()
}

// Two partitions hold the same events in opposite order.
func TestBatchesThatMovePositionsCrosswiseDoNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	first, second := w.keeping("one", 0), w.keeping("two", 1)
	w.slowly("processed_event")
	for range 4 {
		var up, down []domain.Record
		for range 5 {
			e := w.event(w.next[0]+1, "10.50")
			up = append(up, e.record)
			down = append(down, e.record)
		}
		slices.Reverse(down)
		for i := range down {
			down[i] = w.republished(1, down[i])
		}
		for _, err := range together(
			func() error { return one.billAt(first, up...) }, func() error { return two.billAt(second, down...) },
		) {
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, 20, w.position(0))
	require.EqualValues(t, 20, w.position(1))
	require.EqualValues(t, 20, w.counters().Captured)
	w.balanced()
}
