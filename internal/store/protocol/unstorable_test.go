package protocol_test

import (
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

// An intent that the worker cannot lease is not parked, and does not stand in the
// way of those that are due after it.
func TestIntentThatCannotBeLeasedLetsTheOthersPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	w.provider.script(a.id, refuses)
	w.provider.script(b.id, refuses)
	one.mustBill(a.record, b.record)
	w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 minute' WHERE event_id = $1", a.id)
	w.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.order_id = 1 AND NEW.state = 'calling' THEN RAISE EXCEPTION SQLSTATE '22000'; END IF; RETURN NEW; END $$`)
	w.exec("CREATE TRIGGER refuse BEFORE UPDATE ON charge_intent FOR EACH ROW EXECUTE FUNCTION refuse()")
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
