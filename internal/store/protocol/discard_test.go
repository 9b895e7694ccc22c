package protocol_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// The outcome says what becomes of the order: each later event of it meets the
// charge that the operator wrote.
func TestDiscardEndsTheEventAsTheProviderSaw(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first   step
		outcome domain.Outcome
		result  domain.Result
		ends    string
		later   string // what becomes of a later event of the order, of the same amount
	}{
		"surely not charged":               {rejects, "", domain.ResultDiscarded, "discarded", "captured"},
		"surely not charged, says he":      {rejects, domain.OutcomeNotCharged, domain.ResultDiscarded, "discarded", "captured"},
		"not charged by us, but elsewhere": {rejects, domain.OutcomeCharged, domain.ResultCaptured, "captured", "duplicate_order"},
		"not charged by us, nobody knows":  {rejects, domain.OutcomeUnknown, domain.ResultDiscarded, "discarded", "held"},
		"maybe charged, but was not":       {conflicts, domain.OutcomeNotCharged, domain.ResultDiscarded, "discarded", "captured"},
		"maybe charged, and was":           {losing(conflicts), domain.OutcomeCharged, domain.ResultCaptured, "captured", "duplicate_order"},
		"maybe charged, nobody knows":      {conflicts, domain.OutcomeUnknown, domain.ResultDiscarded, "discarded", "held"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, d := w.instance("one"), w.desk()
			a := parked(w, one, tt.first, conflicts)
			if len(w.letters()) == 0 {
				w.clock.advance(time.Minute)
				one.settle()
			}
			if tt.outcome == domain.OutcomeCharged {
				w.provider.captures[a.id]++ // the operator saw it there
			}
			d.mustDiscard(a.record, tt.outcome, tt.result)
			w.final(a, tt.ends)
			state, _ := w.letterState(a.record)
			require.Equal(t, domain.LetterDiscarded, state)
			outcome := string(tt.outcome)
			if outcome == "" {
				outcome = "not_charged"
			}
			require.Equal(t, []actionRow{{"discard", "alice", "given up", outcome, string(tt.result)}}, w.actions())
			w.balanced()

			posts := w.provider.postsOf(a.id)
			one.mustBill(a.record) // the offsets were reset
			w.exec("DELETE FROM processed_event")
			one.mustBill(a.record)
			one.settle()
			require.Equal(t, posts, w.provider.postsOf(a.id), "what was discarded is charged no more")

			later := w.event(a.order, "10.50")
			one.mustBill(later.record)
			if tt.later == "held" {
				require.Equal(t, "held", w.intent(later).State)
				_, reason := w.letterState(later.record)
				require.Equal(t, domain.ReasonOrderConflict, reason)
				require.Zero(t, w.provider.postsOf(later.id))
			} else {
				require.Equal(t, tt.later, w.status(later))
			}
			w.balanced()
		})
	}
}

func TestDiscardAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := parked(w, w.instance("one"), conflicts)
	d := w.desk()
	id := w.letterID(a.record)
	for name, i := range map[string]domain.Instruction{
		"reason":           {By: "alice", Why: " ", Outcome: domain.OutcomeNotCharged},
		"by":               {Why: "because", Outcome: domain.OutcomeNotCharged},
		"outcome":          {By: "alice", Why: "because"},
		"providerChargeId": {By: "alice", Why: "because", Outcome: domain.OutcomeUnknown, ProviderChargeID: "ch_1"},
	} {
		i.LetterID = id
		_, err := d.Discard(t.Context(), i)
		var input *domain.InputError
		require.ErrorAs(t, err, &input, name)
		require.Equal(t, name, input.Field)
	}
	_, err := d.discard(a.record, "perhaps")
	require.ErrorContains(t, err, "not_charged, charged or unknown")
	require.Equal(t, "parked", w.intent(a).State)
	require.Empty(t, w.actions())
}

// Two captures of one order are money to be given back: the book has room for one.
func TestDiscardAsChargedDoesNotOverwriteTheOrdersCharge(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, captures)
	l.chargedElsewhere(l.event)
	l.answer(l.one, l.first)
	l.answer(l.two, l.second)
	require.Equal(t, "parked", l.intent(l.event).State)
	d := l.desk()
	_, err := d.discard(l.event.record, domain.OutcomeCharged)
	conflict(t, err, "give the money of this one back")
	d.mustDiscard(l.event.record, domain.OutcomeNotCharged, domain.ResultDiscarded)
	l.final(l.event, "discarded")
}

// A held event has left its order free, and another event of it may be on its way
// to the provider: the operator who says "charged" waits for that one's end.
func TestDiscardAsChargedKeepsOutOfAnOrderThatIsBeingCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	a := parked(w, one, rejects)
	b := w.event(a.order, "10.50")
	gate := newGateway()
	w.provider.script(b.id, gate.holding(captures))
	done := one.start(b.record)
	await(t, gate.arrived)
	for _, outcome := range []domain.Outcome{domain.OutcomeCharged, domain.OutcomeUnknown} {
		_, err := d.discard(a.record, outcome)
		conflict(t, err, "being charged")
	}
	close(gate.release)
	require.NoError(t, await(t, done))
	w.final(b, "captured")
	require.Equal(t, "held", w.intent(a).State)
	w.balanced()
}

// The other way round: whoever opens its intent while the operator writes looks
// again, and sees what the operator wrote.
func TestEventThatOpensWhileItsOrderIsDiscardedAsChargedIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	a := parked(w, one, rejects)
	b := w.event(a.order, "10.50")
	w.provider.captures[a.id]++
	one.seam.once(openEnds, func() error {
		w.exec("UPDATE charge_intent SET state = 'waiting', lease_until = NULL WHERE event_id = $1", b.id)
		d.mustDiscard(a.record, domain.OutcomeCharged, domain.ResultCaptured)
		w.exec("UPDATE charge_intent SET state = 'calling', lease_until = due_at WHERE event_id = $1", b.id)
		return nil
	})
	one.mustBill(b.record)
	require.Zero(t, w.provider.postsOf(b.id))
	w.final(b, "duplicate_order")
	w.balanced()
}

// An operator replays, another one discards, the worker looks for what is due and
// the record comes again, all at one moment: one of the first two wins.
func TestReplayAndDiscardAtOneMomentHaveOneWinner(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := parked(w, one, rejects)
			const operators = 3 // of each kind
			start, ends := make(chan struct{}), make(chan error, 2*operators)
			for n := range 2 * operators {
				d := w.desk()
				go func() {
					<-start
					var err error
					if n%2 == 0 {
						_, err = d.replay(a.record)
					} else {
						_, err = d.discard(a.record, domain.OutcomeNotCharged)
					}
					ends <- err
				}()
			}
			billed := make(chan error, 1)
			go func() { <-start; billed <- one.bill(a.record) }()
			worker := one.run()
			close(start)
			var won int
			for range 2 * operators {
				err := await(t, ends)
				var lost *domain.ConflictError
				switch {
				case err == nil:
					won++
				case errors.As(err, &lost):
				default:
					require.NoError(t, err)
				}
			}
			require.Equal(t, 1, won)
			require.NoError(t, await(t, billed))
			one.idle()
			worker.stop()
			actions := w.actions()
			require.Len(t, actions, 1)
			if actions[0].Action == "replay" {
				w.final(a, "captured")
			} else {
				w.final(a, "discarded")
				require.Equal(t, 1, w.provider.postsOf(a.id))
			}
			w.balanced()
		})
	}
}
