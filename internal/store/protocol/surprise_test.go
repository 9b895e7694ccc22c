package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

const alarm = "unexpected_capture"

// surprised requires a letter with the charged record, and that the alarm went off.
func surprised(w *world, e event, i *instance) {
	w.t.Helper()
	letter := w.letter(e.record, domain.ReasonNeedsReconciliation)
	require.Equal(w.t, e.id, *letter.EventID)
	require.Contains(w.t, i.log.String(), alarm)
}

// A provider that ignores keys took the money under the first lease and declined
// under the second: what is final stands, and somebody has to give money back.
func TestCaptureOfAnEventThatEndedOtherwiseOverwritesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, event){
		"declined": func(w *world, e event) { w.final(e, "declined") },
		"discarded": func(w *world, e event) {
			w.exec("UPDATE charge SET status = 'discarded'")
			w.exec("UPDATE dedup_stat SET discarded = declined, declined = 0")
			w.exec("DELETE FROM outbox") // nothing is told of what was discarded
			w.final(e, "discarded")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTwoLeases(t, captures, replies(domain.Answer{Kind: domain.Declined, Status: 402}))
			l.answer(l.two, l.second)
			end(l.world, l.event)
			before := l.status(l.event)

			l.answer(l.one, l.first)
			l.final(l.event, before)
			surprised(l.world, l.event, l.a)
			l.balanced()
		})
	}
}

// The order is final through another event: this one is kept, with its claim on
// the order, for the operator.
func TestCaptureOfAnOrderThatEndedOtherwiseIsParked(t *testing.T) {
	t.Parallel()
	t.Run("by the worker", func(t *testing.T) {
		t.Parallel()
		l := newTwoLeases(t, captures, captures)
		l.chargedElsewhere(l.event)
		l.answer(l.one, l.first)
		require.Equal(t, "parked", l.intent(l.event).State)
		require.Empty(t, l.status(l.event))
		surprised(l.world, l.event, l.a)
		l.answer(l.two, l.second)
	})
	t.Run("by the batch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := w.event(1, "10.50")
		w.provider.script(a.id, then(captures, func() { w.chargedElsewhere(a) }))
		require.Error(t, one.bill(a.record))
		one.mustBill(a.record)
		in := w.intent(a)
		require.Equal(t, "parked", in.State)
		require.True(t, in.Claimed)
		require.Equal(t, 1, w.provider.postsOf(a.id))
		surprised(w, a, one)
	})
	// A batch that fails on its answer for ever would stop its partition.
	t.Run("by the batch that finds the answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := abandoned(w, one, captures)
		w.chargedElsewhere(a)
		one.mustBill(a.record)
		in := w.intent(a)
		require.Equal(t, "parked", in.State)
		require.True(t, in.Claimed)
		surprised(w, a, one)
	})
	t.Run("by the worker that finds the answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := abandoned(w, one, captures)
		w.chargedElsewhere(a)
		w.exec("UPDATE charge_intent SET claimed = true")
		one.settle()
		require.Equal(t, "parked", w.intent(a).State)
		surprised(w, a, one)
	})
}

// Somebody lost rows: a restored backup, a hand that slipped. The capture is
// known, and its record with it.
func TestCaptureWithoutAnyTraceInTheBookIsParked(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, captures)
	l.exec("DELETE FROM charge_intent")
	l.answer(l.one, l.first)
	surprised(l.world, l.event, l.a)
	require.Empty(t, l.status(l.event))
	l.answer(l.two, l.second)
}

// The capture of an event that is captured already is no surprise.
func TestSecondAnswerOfTheSameCaptureIsQuiet(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, captures)
	l.answer(l.two, l.second)
	l.answer(l.one, l.first)
	l.final(l.event, "captured")
	require.Empty(t, l.letters())
	require.NotContains(t, l.a.log.String()+l.b.log.String(), alarm)
	l.balanced()
}
