package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// abandoned leaves an intent whose claim was lost: the request was answered by
// the step, and the transaction that should have recorded it failed.
func abandoned(w *world, i *instance, s step) event {
	w.t.Helper()
	e := w.event(1, "10.50")
	w.provider.script(e.id, s)
	i.seam.once(mainCommits, func() error { return errLost })
	require.ErrorIs(w.t, i.bill(e.record), errLost)
	require.False(w.t, w.intent(e).Claimed)
	return e
}

// Until a claim commits, nobody knows that the record will not come again and be
// charged by whoever gets it: the worker keeps its hands off, however late it is.
func TestWorkerTakesNoUnclaimedIntent(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]step{"unknown": times, "waiting": refuses, "answered": captures} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := abandoned(w, one, s)
			before, posts := w.intent(a), w.provider.postsOf(a.id)
			require.Equal(t, name, before.State)

			w.clock.advance(time.Hour)
			one.settle()
			require.Equal(t, before, w.intent(a))
			require.Equal(t, posts, w.provider.postsOf(a.id))
			require.Zero(t, w.counters())

			one.mustBill(a.record)
			require.Equal(t, posts, w.provider.postsOf(a.id), "an event that finds an intent of its own makes no call")
			one.settle()
			w.final(a, "captured")
			w.balanced()
		})
	}
}

// A process that dies under its lease leaves an unclaimed one.
func TestWorkerTakesNoUnclaimedIntentOfADeadProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	one.seam.once(openEnds, one.seam.kill)
	require.ErrorIs(t, one.bill(a.record), errLost)
	w.clock.advance(30 * 24 * time.Hour)
	two.settle()
	require.Equal(t, "calling", w.intent(a).State)
	require.Zero(t, w.provider.postsOf(a.id))
	require.Empty(t, w.letters())
}

// The intent is due from the moment that it is committed: when nothing else ever
// ran of its process, the claim that comes with the redelivery is all it needs.
func TestIntentOfAProcessThatDiedRightAfterItIsNoOrphan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	one.seam.once(openEnds, one.seam.kill)
	require.ErrorIs(t, one.bill(a.record), errLost)

	two.mustBill(a.record)
	two.settle()
	in := w.intent(a)
	require.Equal(t, "calling", in.State, "the dead process may still be sending")
	require.True(t, in.Claimed)
	require.Equal(t, w.clock.Now().Add(w.policy.Lease), in.DueAt.UTC())
	require.Zero(t, w.provider.postsOf(a.id))

	w.clock.advance(w.policy.Lease)
	two.settle()
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

// A stored answer that is claimed, and not finished by the claim, is the worker's.
func TestWorkerFinishesAClaimedAnswerWithoutACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		ends   func(*world, event)
	}{
		"captured": {captures, func(w *world, e event) { w.final(e, "captured") }},
		"declined": {declines, func(w *world, e event) { w.final(e, "declined") }},
		"rejected": {rejects, func(w *world, e event) { require.Equal(w.t, "held", w.intent(e).State) }},
		"conflict": {conflicts, func(w *world, e event) { require.Equal(w.t, "parked", w.intent(e).State) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.ignoresKeys = true
			one := w.instance("one")
			a := abandoned(w, one, tt.answer)
			require.Equal(t, "answered", w.intent(a).State)
			w.exec("UPDATE charge_intent SET claimed = true")
			one.settle()
			tt.ends(w, a)
			require.Equal(t, 1, w.provider.postsOf(a.id))
		})
	}
}

// The claim may be made good while the call of the lost transaction goes on:
// its answer then finishes the event at once.
func TestAnswerThatComesAfterTheClaimFinishesTheEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	call := newGateway()
	w.provider.script(a.id, call.holding(captures))
	lost := one.start(a.record)
	await(t, call.arrived)
	w.terminateMain()
	two.mustBill(a.record)
	require.True(t, w.intent(a).Claimed)
	require.Equal(t, "calling", w.intent(a).State)

	close(call.release)
	require.Error(t, await(t, lost))
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}
