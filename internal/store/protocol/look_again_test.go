package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// The batch saw a free order before its intent stood; meanwhile another event of
// the order was charged from beginning to end.
func TestBatchLooksAgainOnceItsIntentStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	two.seam.once(mainLooked, func() error { return one.bill(a.record) })

	two.mustBill(w.republished(1, b.record))
	w.final(a, "captured")
	w.final(b, "duplicate_order")
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}

// The same between the worker's look and its lease.
func TestWorkerLooksAgainOnceItsLeaseStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	w.provider.script(b.id, refuses)
	two.mustBill(b.record)
	require.Equal(t, "waiting", w.intent(b).State)

	w.clock.advance(time.Minute)
	two.seam.once(takeLooked, func() error { return one.bill(a.record) })
	two.settle()
	w.final(a, "captured")
	w.final(b, "duplicate_order")
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}

// The amounts differ, so nobody can call it the same purchase.
func TestWorkerThatFindsTheOrderCapturedWithAnotherAmountHoldsTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(1, "99.00")
	w.provider.script(b.id, refuses)
	two.mustBill(b.record)

	w.clock.advance(time.Minute)
	two.seam.once(takeLooked, func() error { return one.bill(a.record) })
	two.settle()
	w.final(a, "captured")
	require.Equal(t, "held", w.intent(b).State)
	require.Zero(t, w.provider.postsOf(b.id))
	w.letter(b.record, domain.ReasonOrderConflict)
	w.balanced()
}

// What the batch committed before its look belongs to it until it writes there:
// its own intent is no reason to withhold the charge.
func TestBatchIsNotStoppedByItsOwnIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.mustBill(a.record)
	w.final(a, "captured")
	require.Equal(t, []point{mainLooked, openBegins, openEnds, mainLooked, mainWrites, mainWrote, mainCommits, mainCommitted},
		one.seam.reached(), "claim, intend, look again, charge, record")
	w.balanced()
}

// An intent whose lease is used up before the call is not sent: whoever takes it
// over must not meet a sender.
func TestBatchThatComesLateUnderItsLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.seam.once(openEnds, func() error { w.clock.advance(w.policy.Lease - w.policy.CommitMargin); return nil })

	one.mustBill(a.record)
	in := w.intent(a)
	require.Equal(t, "waiting", in.State)
	require.Zero(t, in.Attempts)
	require.Equal(t, w.clock.Now(), in.DueAt.UTC(), "due now")
	require.Zero(t, w.provider.postsOf(a.id))

	one.settle()
	w.final(a, "captured")
	w.balanced()
}

func TestWorkerThatComesLateUnderItsLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, refuses)
	one.mustBill(a.record)
	w.clock.advance(time.Minute)

	posts := -1
	one.seam.once(sideLooked, func() error { w.clock.advance(w.policy.Lease - w.policy.CommitMargin); return nil })
	one.seam.once(sideLooked, func() error { posts = w.provider.postsOf(a.id); return nil }) // it records that it did not send
	one.settle()
	require.Zero(t, posts)
	w.final(a, "captured")
	w.balanced()
}
