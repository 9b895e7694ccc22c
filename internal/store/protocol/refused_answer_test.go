package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// detail returns what the letter of a record says.
func (w *world) detail(r domain.Record) (detail string) {
	w.t.Helper()
	w.scan(`SELECT detail FROM dead_letter WHERE partition = $1 AND "offset" = $2`, []any{r.Partition, r.Offset}, &detail)
	return detail
}

// mended ends what refusing began.
func (w *world) mended(table string) {
	w.t.Helper()
	w.exec("DROP TRIGGER refuse ON " + table)
}

// The answer is here, and the database refuses the batch's charge of it: the charge is parked as one
// that an operator sees and can finish, with what is known of its end; its neighbours are charged.
func TestAnAnswerThatTheDatabaseRefusesInABatchIsParkedWithItsEvidence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		state  string
		known  func(event) string
		finish func(*world, *instance, event)
		ends   string
	}{
		"captured, and replayed once that is mended": {
			captures, "parked", func(e event) string { return `captured as "ch_` + e.id.String() + `"` },
			func(w *world, i *instance, e event) {
				w.desk().mustReplay(e.record, domain.ResultSentRound)
				i.settle()
				require.Equal(w.t, 2, w.provider.postsOf(e.id), "asked once more, under the same key")
			}, "captured",
		},
		"captured, and written down by an operator": {
			captures, "parked", func(e event) string { return `captured as "ch_` + e.id.String() + `"` },
			func(w *world, _ *instance, e event) {
				w.desk().mustDiscard(e.record, domain.OutcomeCharged, domain.ResultCaptured)
				require.Equal(w.t, 1, w.provider.postsOf(e.id))
			}, "captured",
		},
		"declined": {
			declines, "held", func(event) string { return "answered: declined" },
			func(w *world, i *instance, e event) {
				w.desk().mustReplay(e.record, domain.ResultSentRound)
				i.settle()
			}, "declined",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a, b, c := w.event(1, "10.50"), w.event(2, "7.00"), w.event(3, "9.99")
			w.provider.script(b.id, tt.answer)
			w.refusing("INSERT", "charge", "NEW.order_id = 2")
			one.mustBill(a.record, b.record, c.record)
			w.final(a, "captured")
			w.final(c, "captured")
			in := w.intent(b)
			require.Equal(t, tt.state, in.State)
			require.True(t, in.Claimed)
			letter := w.letter(b.record, domain.ReasonNeedsReconciliation)
			require.Equal(t, b.id, *letter.EventID)
			require.Contains(t, w.detail(b.record), tt.known(b))
			require.Equal(t, domain.Counters{Received: 3, Processed: 3, Captured: 2}, w.counters())
			w.balanced()

			one.mustBill(a.record, b.record, c.record)
			w.clock.advance(30 * 24 * time.Hour)
			one.settle()
			for _, e := range []event{a, b, c} {
				require.Equal(t, 1, w.provider.postsOf(e.id), "nobody is asked again")
			}
			w.clock.advance(-30 * 24 * time.Hour)
			w.mended("charge")
			tt.finish(w, one, b)
			w.final(b, tt.ends)
			require.LessOrEqual(t, w.provider.capturesOf(b.id), 1)
			state, _ := w.letterState(b.record)
			require.NotEqual(t, domain.LetterOpen, state)
			w.balanced()
		})
	}
}

// The money was taken for an event that may not be parked either: its record is, and says so.
func TestAnAnswerThatCannotEvenBeParkedIsToldByItsRecordsLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	w.refusing("INSERT", "charge", "NEW.order_id = 2")
	w.exec("CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION SQLSTATE '22000'; END $$")
	w.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON charge_intent FOR EACH ROW
		WHEN (NEW.order_id = 2 AND NEW.state = 'parked') EXECUTE FUNCTION refuse_all()`)
	one.mustBill(a.record, b.record)
	w.final(a, "captured")
	w.letter(b.record, domain.ReasonUnstorable)
	require.Contains(t, w.detail(b.record), `captured as "ch_`+b.id.String())
	require.Equal(t, "answered", w.intent(b).State, "what is known is kept")
	w.balanced()

	w.mended("charge")
	w.mended("charge_intent")
	w.desk().mustReplay(b.record, domain.ResultRecovered)
	w.final(b, "captured")
	require.Equal(t, 1, w.provider.postsOf(b.id))
	require.EqualValues(t, 1, w.counters().Recovered)
	w.balanced()
}

// The batch is lost, and its answer cannot be put down: it is not tried until the lease ends, and the
// next run of the batch claims the event as it was parked.
func TestAnAnswerThatCannotBePutDownIsParkedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	w.refusing("UPDATE", "charge_intent", "NEW.order_id = 2 AND NEW.state = 'answered'")
	one.seam.once(mainCommits, func() error { return errLost })
	began := time.Now()
	require.ErrorIs(t, one.bill(a.record, b.record), errLost)
	require.Less(t, time.Since(began), w.policy.Lease, "it would be refused as often as it is tried")
	in := w.intent(b)
	require.Equal(t, "parked", in.State)
	require.False(t, in.Claimed)
	conflictLetter := func() error { _, err := w.desk().replay(b.record); return err }
	conflict(t, conflictLetter(), "not through yet")

	one.mustBill(a.record, b.record)
	w.final(a, "captured")
	in = w.intent(b)
	require.Equal(t, "parked", in.State)
	require.True(t, in.Claimed)
	w.letter(b.record, domain.ReasonNeedsReconciliation)
	require.Contains(t, w.detail(b.record), `captured as "ch_`+b.id.String())
	require.Equal(t, 1, w.provider.postsOf(b.id))
	w.balanced()
}

// What an earlier, lost transaction has begun, and the database refuses to have claimed, is parked for
// what it may be.
func TestABegunChargeThatCannotBeClaimedIsParkedForWhatItMayBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first step
		ends  string
	}{"surely not sent": {refuses, "held"}, "perhaps sent": {times, "parked"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := abandoned(w, one, tt.first)
			w.refusing("UPDATE", "charge_intent", "NEW.state IN ('waiting', 'unknown')")
			one.mustBill(a.record)
			in := w.intent(a)
			require.Equal(t, tt.ends, in.State)
			require.True(t, in.Claimed)
			w.letter(a.record, domain.ReasonNeedsReconciliation)
			w.balanced()
			w.mended("charge_intent")
			w.desk().mustReplay(a.record, domain.ResultSentRound)
			one.settle()
			w.final(a, "captured")
			w.balanced()
		})
	}
}
