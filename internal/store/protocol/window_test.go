package protocol_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// windowed gives an instance a window of a week.
func windowed(p *domain.Policy) { p.DedupRetention = 168 * time.Hour }

// aged returns an event whose record is so old. Its id has no time of its own.
func (w *world) aged(order int64, amount string, age time.Duration) event {
	e := w.eventOf(uuid.New(), order, amount)
	e.record.Timestamp = w.clock.Now().Add(-age)
	return e
}

const eightDays = 192 * time.Hour

// Nothing is known of it, and it may have been dealt with and forgotten: it is not
// charged. Its claim stays, so that it is a duplicate from then on.
func TestEventOutsideTheDedupWindowIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one", windowed)
	old, young := w.aged(1, "10.50", eightDays), w.aged(2, "7.00", time.Hour)
	one.mustBill(old.record, young.record)
	w.final(young, "captured")
	require.Zero(t, w.provider.postsOf(old.id))
	require.Equal(t, "held", w.intent(old).State)
	w.letter(old.record, domain.ReasonOutsideDedupWindow)
	require.Equal(t, domain.Counters{Received: 2, Processed: 2, NonV7: 2, Captured: 1}, w.counters())

	one.mustBill(old.record)
	require.EqualValues(t, 1, w.counters().Redelivered)
	w.clock.advance(48 * time.Hour)
	one.settle()
	require.Zero(t, w.provider.postsOf(old.id), "a letter is an operator's")
	require.Len(t, w.letters(), 1)
	w.balanced()
}

// The order does not make it known: it may have been declined, and forgotten.
func TestEventOutsideTheDedupWindowIsHeldWhateverBecameOfItsOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one", windowed)
	young := w.aged(1, "10.50", time.Hour)
	one.mustBill(young.record)
	old := w.aged(1, "10.50", eightDays)
	one.mustBill(old.record)
	require.Equal(t, "held", w.intent(old).State)
	w.letter(old.record, domain.ReasonOutsideDedupWindow)
	w.balanced()
}

// A lost transaction left its intent behind: that is knowing it.
func TestEventThatAnIntentKnowsIsFinishedHoweverOldItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two", windowed)
	a := w.aged(1, "10.50", eightDays)
	one.seam.once(mainCommits, one.seam.kill)
	require.Error(t, one.bill(a.record))
	two.mustBill(a.record)
	w.clock.advance(time.Minute)
	two.settle()
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.capturesOf(a.id))
	require.Empty(t, w.letters())
	w.balanced()
}

// Everything comes once more, and processed_event is empty: what was charged,
// declined or parked is known, and what is not is held.
func TestOffsetsResetBeyondTheWindowChargeNothingAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one", windowed)
	captured, declined := w.aged(1, "10.50", time.Hour), w.aged(2, "7.00", time.Hour)
	parked, forgotten := w.aged(3, "9.99", time.Hour), w.aged(4, "5.00", time.Hour)
	w.provider.script(declined.id, declines)
	w.provider.script(parked.id, conflicts)
	all := []domain.Record{captured.record, declined.record, parked.record, forgotten.record}
	one.mustBill(all...)
	w.clock.advance(eightDays)
	w.exec("DELETE FROM processed_event")
	w.exec("DELETE FROM charge WHERE event_id = $1", forgotten.id) // as if it were of before the flood

	one.mustBill(all...)
	one.settle()
	for _, e := range []event{captured, declined, parked, forgotten} {
		require.Equal(t, 1, w.provider.postsOf(e.id))
	}
	require.Equal(t, "held", w.intent(forgotten).State)
	require.Len(t, w.letters(), 2)
	n := w.counters()
	require.EqualValues(t, 3, n.Redelivered+n.Republished)
	require.EqualValues(t, 5, n.Processed)
}
