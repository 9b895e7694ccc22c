package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func softly(p *domain.Policy) { p.SoftDeadline = time.Millisecond }

// left bills a batch of one event that is answered and one whose call is held,
// and returns when the batch has committed without it.
func left(t *testing.T, answer step) (w *world, one *instance, quick, slow event, call *gateway) {
	t.Helper()
	w = newWorld(t)
	w.provider.ignoresKeys = true
	one = w.instance("one", softly)
	quick, slow = w.event(1, "10.50"), w.event(2, "10.50")
	call = newGateway()
	w.provider.script(slow.id, call.holding(answer))
	one.mustBill(quick.record, slow.record)
	w.final(quick, "captured")
	in := w.intent(slow)
	require.Equal(t, "calling", in.State, "its call goes on")
	require.True(t, in.Claimed)
	w.balanced()
	return w, one, quick, slow, call
}

func TestStragglerHoldsNobodyUpAndIsRecordedWhenItAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		ends   func(*world, event)
	}{
		"captured": {captures, func(w *world, e event) { w.final(e, "captured") }},
		"declined": {declines, func(w *world, e event) { w.final(e, "declined") }},
		"rejected": {rejects, func(w *world, e event) { require.Equal(w.t, "held", w.intent(e).State) }},
		"unknown":  {times, func(w *world, e event) { require.Equal(w.t, "unknown", w.intent(e).State) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, one, _, slow, call := left(t, tt.answer)
			w.instance("two").settle() // under its lease it is nobody else's
			require.Equal(t, "calling", w.intent(slow).State)
			close(call.release)
			one.Drain()
			tt.ends(w, slow)
			require.Equal(t, 1, w.provider.postsOf(slow.id))
			w.balanced()
		})
	}
}

func TestDuplicateOfAStragglerIsOne(t *testing.T) {
	t.Parallel()
	w, one, _, slow, call := left(t, captures)
	one.mustBill(w.republished(1, slow.record))
	sibling := w.event(2, "10.50")
	one.mustBill(sibling.record)
	require.Equal(t, "waiting", w.intent(sibling).State, "its order is claimed")
	close(call.release)
	one.Drain()
	w.final(slow, "captured")
	w.clock.advance(time.Minute)
	one.settle()
	w.final(sibling, "duplicate_order")
	require.Equal(t, 1, w.provider.postsOf(slow.id))
	require.Zero(t, w.provider.postsOf(sibling.id))
	require.EqualValues(t, 1, w.counters().Republished)
	w.balanced()
}

// The batch may be lost after it left a call behind: the answer is kept all the
// same, and the next run finishes from it.
func TestStragglerOfALostBatchKeepsItsAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one, two := w.instance("one", softly), w.instance("two")
	a := w.event(1, "10.50")
	call := newGateway()
	w.provider.script(a.id, call.holding(captures))
	one.seam.once(mainWrote, func() error { return errLost })
	require.ErrorIs(t, one.bill(a.record), errLost)
	require.Equal(t, "calling", w.intent(a).State, "a call in flight is not put back")
	close(call.release)
	one.Drain()
	require.Equal(t, "answered", w.intent(a).State)
	two.mustBill(a.record)
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

// Many late answers must not queue for the few side connections until their
// leases end: what comes while one is being recorded is put down together.
func TestLateAnswersThatComeTogetherArePutDownTogether(t *testing.T) {
	t.Parallel()
	const many = 40
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one", softly)
	var events []event
	var records []domain.Record
	call := newGateway()
	ends := []step{captures, declines, rejects, times}
	for i := range many {
		e := w.event(int64(i+1), "10.50")
		w.provider.script(e.id, call.holding(ends[i%len(ends)]))
		events, records = append(events, e), append(records, e.record)
	}
	one.mustBill(records...)
	before := len(one.seam.reached())
	close(call.release)
	one.Drain()
	transactions := 0
	for _, p := range one.seam.reached()[before:] {
		if p == sideCommitted {
			transactions++
		}
	}
	require.Positive(t, transactions)
	require.Less(t, transactions, many/2)
	one.settle()
	for i, e := range events {
		require.Equal(t, 1, w.provider.postsOf(e.id))
		switch i % len(ends) {
		case 0:
			w.final(e, "captured")
		case 1:
			w.final(e, "declined")
		case 2:
			require.Equal(t, "held", w.intent(e).State)
		case 3:
			require.Equal(t, "unknown", w.intent(e).State)
		}
	}
	w.balanced()
}

// Whose lease has passed on meanwhile is none of the others' business.
func TestALateAnswerOfAnOlderLeaseIsNotPutDownWithTheOthers(t *testing.T) {
	t.Parallel()
	const many = 10
	w := newWorld(t)
	one, two := w.instance("one", softly), w.instance("two")
	var events []event
	var records []domain.Record
	call := newGateway()
	for i := range many {
		e := w.event(int64(i+1), "10.50")
		w.provider.script(e.id, call.holding(captures))
		events, records = append(events, e), append(records, e.record)
	}
	one.mustBill(records...)
	w.clock.advance(w.policy.Lease)
	two.settle() // takes all of them over, and is answered at once: the provider knows the key
	close(call.release)
	one.Drain()
	one.settle()
	for _, e := range events {
		w.final(e, "captured")
		require.Equal(t, 1, w.provider.capturesOf(e.id))
	}
	w.balanced()
}

// Nor are they put down under the lease of whoever has taken over and is calling.
func TestLateAnswersAreNotPutDownUnderSomebodyElsesLease(t *testing.T) {
	t.Parallel()
	const many = 10
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one, two := w.instance("one", softly), w.instance("two")
	earlier, later := newGateway(), newGateway()
	var events []event
	var records []domain.Record
	for i := range many {
		e := w.event(int64(i+1), "10.50")
		w.provider.script(e.id, earlier.holding(times), later.holding(captures))
		events, records = append(events, e), append(records, e.record)
	}
	one.mustBill(records...)
	w.clock.advance(w.policy.Lease)
	worker := two.run()
	for range 2 * many {
		select {
		case <-earlier.arrived:
		case <-later.arrived:
		case <-time.After(patience):
			require.FailNow(t, "not all of them are being called for by both")
		}
	}
	close(earlier.release)
	one.Drain()
	for _, e := range events {
		require.Equal(t, "calling", w.intent(e).State, "its caller may send still")
	}
	close(later.release)
	worker.stop()
	two.settle()
	for _, e := range events {
		w.final(e, "captured")
	}
	w.balanced()
}

// A process that dies with a call left behind is succeeded like any other.
func TestStragglerOfADeadProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	w, one, _, slow, call := left(t, losing(captures))
	require.ErrorIs(t, one.seam.kill(), errLost)
	w.provider.ignoresKeys = false
	w.clock.advance(w.policy.Lease)
	two := w.instance("two")
	close(call.release)
	two.settle()
	w.final(slow, "captured")
	require.Equal(t, 1, w.provider.capturesOf(slow.id))
	w.balanced()
}
