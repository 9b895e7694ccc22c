package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// The row is locked before the call, so that the twin waits for its outcome.
func TestTwinInAnotherInstanceWaitsAndIsADuplicate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		partition int32
		counted   domain.Counters
	}{
		"republished at another partition": {1, domain.Counters{Received: 2, Processed: 1, Republished: 1, Captured: 1}},
		"redelivered by a rebalance":       {0, domain.Counters{Received: 2, Processed: 1, Redelivered: 1, Captured: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.ignoresKeys = true
			one, two := w.instance("one"), w.instance("two")
			a := w.event(1, "10.50")
			twin := a.record
			if tt.partition != 0 {
				twin = w.republished(tt.partition, a.record)
			}
			call := newGateway()
			w.provider.script(a.id, call.holding(captures))
			first := one.start(a.record)
			await(t, call.arrived)
			second := two.start(twin)
			w.blocked("billing")

			close(call.release)
			require.NoError(t, await(t, first))
			require.NoError(t, await(t, second))
			w.final(a, "captured")
			require.Equal(t, 1, w.provider.postsOf(a.id))
			require.Equal(t, tt.counted, w.counters())
			w.balanced()
		})
	}
}

// When the first one's transaction is lost after all, the twin takes over where
// it left off: with its evidence, and without a call.
func TestTwinOfALostTransactionGoesOnFromItsEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	call := newGateway()
	w.provider.script(a.id, call.holding(captures))
	first := one.start(a.record)
	await(t, call.arrived)
	second := two.start(w.republished(1, a.record))
	w.blocked("billing")
	one.seam.once(mainCommits, func() error { return errLost })
	close(call.release)
	require.ErrorIs(t, await(t, first), errLost)
	require.NoError(t, await(t, second))

	one.mustBill(a.record)
	w.clock.advance(w.policy.Lease)
	two.settle()
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

func TestRepetitionsWithinOneBatchAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.mustBill(a.record, w.republished(1, a.record), a.record, w.altered(a, "11.00"))
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	require.Equal(t, domain.Counters{Received: 4, Processed: 1, Redelivered: 1, Republished: 1, Conflicting: 1, Captured: 1}, w.counters())
	w.balanced()
}

// Retention and another consumer group alike: the business record remembers.
func TestWhatProcessedEventForgotIsStillADuplicate(t *testing.T) {
	t.Parallel()
	forget := func(w *world, one *instance) *instance {
		w.exec("DELETE FROM processed_event")
		return one
	}
	for how, reader := range map[string]func(*world, *instance) *instance{
		"forgotten":     forget,
		"another group": func(w *world, _ *instance) *instance { return w.instance("two", inGroup("another")) },
	} {
		for what, first := range map[string]step{
			"charge": captures, "decline": declines, "claimed intent": times, "parked": conflicts, "held": rejects,
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				one := w.instance("one")
				a := w.event(1, "10.50")
				w.provider.script(a.id, first)
				one.mustBill(a.record)
				reader(w, one).mustBill(a.record, w.republished(1, a.record))
				require.Equal(t, 1, w.provider.postsOf(a.id))
				n := w.counters()
				require.Equal(t, []int64{3, 1, 1, 1}, []int64{n.Received, n.Processed, n.Redelivered, n.Republished})
				w.balanced()

				reader(w, one).mustBill(w.altered(a, "11.00"))
				require.EqualValues(t, 1, w.counters().Conflicting)
				require.Equal(t, 1, w.provider.postsOf(a.id))
				w.balanced()
			})
		}
	}
}

func inGroup(name string) func(*domain.Policy) { return func(p *domain.Policy) { p.Group = name } }

// Two groups may meet in the middle: the one whose transaction is open holds the
// intent, the other one claims it first. One of them has seen it first.
func TestEventThatAnotherGroupClaimedMeanwhileIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two", inGroup("another"))
	a := w.event(1, "10.50")
	call := newGateway()
	w.provider.script(a.id, call.holding(captures))
	first := one.start(a.record)
	await(t, call.arrived)
	two.mustBill(a.record)
	close(call.release)
	require.ErrorIs(t, await(t, first), domain.ErrMoved)
	one.mustBill(a.record)
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

// A group may go for good: it was renamed, or its service was switched off. What
// it left unfinished makes duplicates elsewhere, so it must be finished there.
func TestWhatAGroupLeftUnfinishedIsFinishedByAnother(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*world, *instance) event{
		"unclaimed, before its claim": func(w *world, i *instance) event { return abandoned(w, i, times) },
		"claimed, of unknown outcome": func(w *world, i *instance) event { return mayBeCharged(w, i, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two", inGroup("another"))
			a := leave(w, one)
			two.mustBill(a.record)
			w.clock.advance(time.Hour)
			two.settle()
			w.final(a, "captured")
			w.balanced()
		})
	}
}

// Another meaning under a known id is nobody's business to charge.
func TestConflictingPayloadIsParkedAndCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	other := w.altered(a, "11.00")
	one.mustBill(a.record)
	one.mustBill(other)
	one.mustBill(other)
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.letter(other, domain.ReasonConflictingPayload)
	require.Equal(t, domain.Counters{Received: 3, Processed: 1, Conflicting: 1, Redelivered: 1, Captured: 1}, w.counters())
	w.balanced()
}

// An intent that a lost transaction left behind is the event's first meaning: a
// record with another one must not claim it, or the true one is never finished.
func TestConflictingPayloadDoesNotAdoptAnIntent(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]step{"answered": captures, "waiting": refuses, "unknown": losing(captures)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two")
			a := abandoned(w, one, s)
			other := w.altered(a, "11.00")
			two.mustBill(other)
			require.False(t, w.intent(a).Claimed)
			w.letter(other, domain.ReasonConflictingPayload)
			w.balanced()

			one.mustBill(a.record)
			w.clock.advance(time.Hour)
			one.settle()
			w.final(a, "captured")
			require.Equal(t, 1, w.provider.capturesOf(a.id))
			require.EqualValues(t, 1, w.counters().Processed)
			w.balanced()
		})
	}
}

// Both meanings in one batch, the wrong one first: each is judged by itself.
func TestConflictingPayloadBeforeTheTrueRecordInOneBatch(t *testing.T) {
	t.Parallel()
	t.Run("with an abandoned intent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.provider.ignoresKeys = true
		one := w.instance("one")
		a, b := abandoned(w, one, captures), w.event(2, "7.00")
		other := w.altered(a, "11.00")
		one.mustBill(b.record, other, a.record)
		w.final(a, "captured")
		w.final(b, "captured")
		require.Equal(t, 1, w.provider.postsOf(a.id))
		require.Equal(t, 1, w.provider.postsOf(b.id), "what was sent before the batch was split is not sent again")
		w.letter(other, domain.ReasonConflictingPayload)
		require.Equal(t, domain.Counters{Received: 3, Processed: 2, Conflicting: 1, Captured: 2}, w.counters())
		w.balanced()
	})
	t.Run("with a charge that processed_event forgot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := w.event(1, "10.50")
		one.mustBill(a.record)
		w.exec("DELETE FROM processed_event")
		other := w.altered(a, "11.00")
		one.mustBill(other, a.record)
		w.letter(other, domain.ReasonConflictingPayload)
		require.Equal(t, domain.Counters{Received: 3, Processed: 1, Conflicting: 1, Redelivered: 1, Captured: 1}, w.counters())
		w.balanced()
	})
}

// The letter of another meaning is closed by an operator alone: that the event
// itself becomes final says nothing about it.
func TestConflictingLetterStaysOpenWhenTheEventBecomesFinal(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, conflicts)
	l.answer(l.two, l.second)
	require.Equal(t, "parked", l.intent(l.event).State)
	other := l.altered(l.event, "11.00")
	l.instance("three").mustBill(other)

	l.answer(l.one, l.first) // the late capture ends the parked event
	l.final(l.event, "captured")
	states := map[string]string{}
	for _, letter := range l.letters() {
		states[letter.Reason] = letter.State
	}
	require.Equal(t, map[string]string{"idempotency_conflict": "resolved", "conflicting_payload": "open"}, states)
	l.balanced()
}
