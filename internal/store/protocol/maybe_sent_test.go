package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// mayBeCharged leaves an event whose only request was captured, and the answer lost.
func mayBeCharged(w *world, i *instance, order int64) event {
	w.t.Helper()
	e := w.event(order, "10.50")
	w.provider.script(e.id, losing(captures))
	i.mustBill(e.record)
	in := w.intent(e)
	require.Equal(w.t, "unknown", in.State)
	require.True(w.t, in.MaybeSent)
	return e
}

// A refused connection says nothing about the request before it: to call the
// event unsent would free the order for a second charge.
func TestRefusedConnectionAfterAnUnknownAnswerStaysUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := mayBeCharged(w, one, 1)
	w.provider.script(a.id, refuses)
	w.clock.advance(time.Minute)
	one.settle()
	in := w.intent(a)
	require.Equal(t, "unknown", in.State)
	require.True(t, in.MaybeSent)

	b := w.event(1, "10.50")
	one.mustBill(b.record)
	require.Equal(t, "waiting", w.intent(b).State, "the order stays claimed")
	require.Zero(t, w.provider.postsOf(b.id))

	w.clock.advance(time.Hour)
	one.settle()
	w.clock.advance(time.Hour)
	one.settle()
	w.final(a, "captured")
	w.final(b, "duplicate_order")
	w.balanced()
}

// The rule holds between the quick attempts of one call too.
func TestRefusedConnectionAfterAnUnknownAttemptOfTheSameCallIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, replies(domain.Answer{Kind: domain.NotSent, MaybeSent: true}))
	one.mustBill(a.record)
	in := w.intent(a)
	require.Equal(t, "unknown", in.State)
	require.True(t, in.MaybeSent)
	w.balanced()
}

func TestRejectionParksTheEvent(t *testing.T) {
	t.Parallel()
	t.Run("keeping the order after an unknown answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := mayBeCharged(w, one, 1)
		w.provider.script(a.id, rejects)
		w.clock.advance(time.Minute)
		one.settle()
		require.Equal(t, "parked", w.intent(a).State)
		w.letter(a.record, domain.ReasonProviderRejected)

		b := w.event(1, "10.50")
		one.mustBill(b.record)
		w.clock.advance(time.Hour)
		one.settle()
		require.Equal(t, "waiting", w.intent(b).State)
		require.Zero(t, w.provider.postsOf(b.id))
		w.balanced()
	})
	t.Run("freeing the order when it was surely not charged", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a, b := w.event(1, "10.50"), w.event(1, "10.50")
		w.provider.script(a.id, rejects)
		one.mustBill(a.record)
		require.Equal(t, "held", w.intent(a).State)
		w.letter(a.record, domain.ReasonProviderRejected)
		one.mustBill(b.record)
		w.final(b, "captured")
		w.balanced()
	})
}

// The key is bound to another payload: whether that was charged, nobody knows.
func TestKeyConflictParksKeepingTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, conflicts)
	one.mustBill(a.record)
	require.Equal(t, "parked", w.intent(a).State)
	require.True(t, w.intent(a).MaybeSent)
	w.letter(a.record, domain.ReasonIdempotencyConflict)
	w.balanced()
}

// Whoever held the lease had the time to send: its successor must not believe
// that nothing was sent because its own connection is refused.
func TestTakeOverOfAnExpiredLeaseMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	w.provider.script(a.id, then(captures, func() { _ = one.seam.kill() }), refuses)
	require.ErrorIs(t, one.bill(a.record), errLost)
	two.mustBill(a.record) // the record comes again: the claim is made good
	in := w.intent(a)
	require.Equal(t, "calling", in.State, "under the lease of the dead process")
	require.True(t, in.Claimed)

	w.clock.advance(w.policy.Lease)
	two.settle()
	in = w.intent(a)
	require.Equal(t, "unknown", in.State)
	require.True(t, in.MaybeSent)

	b := w.event(1, "10.50")
	two.mustBill(b.record)
	require.Zero(t, w.provider.postsOf(b.id))
	w.clock.advance(time.Hour)
	two.settle()
	w.final(a, "captured")
	w.balanced()
}

// The kept record of an intent may become unreadable to a later release. Under
// an expired lease it may still have been charged.
func TestUnreadableRecordUnderAnExpiredLeaseKeepsTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	w.provider.script(a.id, then(captures, func() { _ = one.seam.kill() }))
	require.ErrorIs(t, one.bill(a.record), errLost)
	two.mustBill(a.record)
	w.exec("UPDATE charge_intent SET record = 'gibberish'")

	w.clock.advance(w.policy.Lease)
	two.settle()
	require.Equal(t, "parked", w.intent(a).State)
	letters := w.letters()
	require.Len(t, letters, 1)
	require.Equal(t, string(domain.ReasonNeedsReconciliation), letters[0].Reason)
	w.balanced()
}
