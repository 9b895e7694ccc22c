package protocol_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// The database refuses one event's values (SQLSTATE class 22), wherever it meets
// them: that event alone is parked, once, and its neighbours are charged once.
func TestEventThatTheDatabaseRefusesIsParkedAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		table, condition string
	}{
		"in processed_event": {"processed_event", "NEW.source_offset = 1"},
		"in charge_intent":   {"charge_intent", "NEW.order_id = 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.ignoresKeys = true
			one := w.instance("one")
			a, b, c := w.event(1, "10.50"), w.event(2, "7.00"), w.event(3, "9.99")
			w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN IF ` + tt.condition + ` THEN RAISE EXCEPTION SQLSTATE '22000'; END IF; RETURN NEW; END $$`)
			w.exec("CREATE TRIGGER refuse BEFORE INSERT ON " + tt.table + " FOR EACH ROW EXECUTE FUNCTION refuse()")

			one.mustBill(a.record, b.record, c.record)
			w.final(a, "captured")
			w.final(b, "")
			w.final(c, "captured")
			require.Zero(t, w.provider.postsOf(b.id))
			w.letter(b.record, domain.ReasonUnstorable)
			require.Equal(t, domain.Counters{Received: 3, Processed: 2, Invalid: 1, Captured: 2}, w.counters())

			one.mustBill(a.record, b.record, c.record)
			require.Equal(t, domain.Counters{Received: 5, Processed: 2, Invalid: 1, Redelivered: 2, Captured: 2}, w.counters(),
				"the parked record is counted once")
			require.Equal(t, 1, w.provider.postsOf(a.id))
			require.Equal(t, 1, w.provider.postsOf(c.id))
			w.letter(b.record, domain.ReasonUnstorable)
			w.balanced()
		})
	}
}

// Whoever shares a batch with such an event waits for a few transactions, not for one of each.
func TestARefusedEventCostsItsNeighboursFewTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	const all, refused = 64, 21
	var records []domain.Record
	for n := range int64(all) {
		records = append(records, w.event(n+1, "10.50").record)
	}
	w.refusing("INSERT", "charge", fmt.Sprintf("NEW.order_id = %d", refused))
	one.mustBill(records...)
	commits := 0
	for _, p := range one.seam.reached() {
		if p == mainCommitted {
			commits++
		}
	}
	require.Equal(t, 7, commits, "a half, a quarter, …, and the refused one by itself")
	require.Equal(t, domain.Counters{Received: all, Processed: all, Captured: all - 1}, w.counters())
	w.balanced()
}

// The refusal comes after the calls: their answers stand, and nobody is charged
// again when the batch is run one by one.
func TestRefusalAfterTheCallsSendsNothingAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one")
	a, b, c := w.event(1, "10.50"), w.event(2, "7.00"), w.event(3, "9.99")
	one.seam.once(mainWrites, func() error { return domain.ErrData })
	one.mustBill(a.record, b.record, c.record)
	for _, e := range []event{a, b, c} {
		w.final(e, "captured")
		require.Equal(t, 1, w.provider.postsOf(e.id))
	}
	require.Empty(t, w.letters())
	w.balanced()
}

// refusing makes the database refuse (SQLSTATE class 22) what meets the condition.
func (w *world) refusing(when, table, condition string) {
	w.t.Helper()
	w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF ` + condition + ` THEN RAISE EXCEPTION SQLSTATE '22000'; END IF; RETURN NEW; END $$`)
	w.exec("CREATE TRIGGER refuse BEFORE " + when + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION refuse()")
}

// An intent that the database refuses to lease would be tried for ever: it is
// parked, and those that are due after it are finished.
func TestIntentThatCannotBeLeasedIsParkedAndLetsTheOthersPass(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first step
		ends  string
	}{"surely not sent": {refuses, "held"}, "perhaps sent": {times, "parked"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a, b := w.event(1, "10.50"), w.event(2, "7.00")
			w.provider.script(a.id, tt.first)
			w.provider.script(b.id, refuses)
			one.mustBill(a.record, b.record)
			w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 minute' WHERE event_id = $1", a.id)
			w.refusing("UPDATE", "charge_intent", "NEW.order_id = 1 AND NEW.state = 'calling'")
			w.clock.advance(time.Minute)
			one.settle()
			w.final(b, "captured")
			require.Equal(t, tt.ends, w.intent(a).State)
			w.letter(a.record, domain.ReasonNeedsReconciliation)
			w.balanced()
		})
	}
}

// One that cannot even be parked waits, and is in nobody's way.
func TestIntentThatCannotEvenBeParkedIsPutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	w.provider.script(a.id, refuses)
	w.provider.script(b.id, refuses)
	one.mustBill(a.record, b.record)
	w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 minute' WHERE event_id = $1", a.id)
	w.refusing("UPDATE", "charge_intent", "NEW.order_id = 1 AND NEW.state IN ('calling', 'held')")
	w.clock.advance(time.Minute)
	one.settle()
	w.final(b, "captured")
	in := w.intent(a)
	require.Equal(t, "waiting", in.State)
	require.True(t, in.DueAt.After(w.clock.Now()))
	require.Empty(t, w.letters())

	w.exec("DROP TRIGGER refuse ON charge_intent")
	w.clock.advance(time.Minute)
	one.settle()
	w.final(a, "captured")
	w.balanced()
}

// The money was taken, and the database refuses to say so: the event keeps its
// order, and is not asked for again.
func TestAnswerThatTheDatabaseRefusesIsParked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		ends   string
	}{"a capture": {captures, "parked"}, "a decline": {declines, "held"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.ignoresKeys = true
			one := w.instance("one")
			a := w.event(1, "10.50")
			w.provider.script(a.id, refuses, tt.answer)
			one.mustBill(a.record)
			w.refusing("INSERT", "charge", "NEW.order_id = 1")
			for range 3 {
				w.clock.advance(time.Hour)
				one.settle()
			}
			require.Equal(t, tt.ends, w.intent(a).State)
			w.letter(a.record, domain.ReasonNeedsReconciliation)
			require.Equal(t, 1, w.provider.postsOf(a.id))
			w.balanced()
		})
	}
}

// The database refuses the event, and the record itself: what is left is where it
// stands, so that the partition goes on.
func TestRecordThatTheDatabaseRefusesIsKnownByItsCoordinates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION SQLSTATE '22000'; END $$`)
	w.exec(`CREATE TRIGGER refuse BEFORE INSERT ON processed_event FOR EACH ROW WHEN (NEW.source_offset = 0) EXECUTE FUNCTION refuse()`)
	w.exec(`CREATE TRIGGER refuse BEFORE INSERT ON dead_letter FOR EACH ROW WHEN (NEW.value IS NOT NULL) EXECUTE FUNCTION refuse()`)
	one.mustBill(a.record, b.record)
	w.final(b, "captured")
	letters := w.letters()
	require.Len(t, letters, 1)
	require.Equal(t, string(domain.ReasonUnstorable), letters[0].Reason)
	require.Equal(t, a.record.Offset, letters[0].Offset)
	require.Nil(t, letters[0].Value)
	require.Equal(t, domain.Counters{Received: 2, Processed: 1, Invalid: 1, Captured: 1}, w.counters())
	w.balanced()
}

// A record that holds no event at all is known by its coordinates.
func TestInvalidRecordIsParkedAndCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	bad := w.republished(0, domain.Record{Timestamp: w.clock.Now(), Value: []byte(`{"eventId":`)})
	one.mustBill(bad, a.record, bad)
	one.mustBill(bad)
	w.letter(bad, domain.ReasonJSON)
	w.final(a, "captured")
	require.Equal(t, domain.Counters{Received: 2, Processed: 1, Invalid: 1, Captured: 1}, w.counters())
	w.balanced()
}
