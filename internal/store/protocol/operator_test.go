package protocol_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// desk is where an operator acts on dead letters, beside the instances.
type desk struct {
	*domain.Operator
	w    *world
	seam *seam
}

// desk opens one with pools of its own, as another process would have.
func (w *world) desk(options ...func(*domain.Policy, *domain.Decoder)) *desk {
	w.t.Helper()
	return w.deskWith(nil, options...)
}

func (w *world) deskWith(f domain.Finder, options ...func(*domain.Policy, *domain.Decoder)) *desk {
	w.t.Helper()
	s, err := store.New(storetest.Config(w.url))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, s.Close()) })
	policy, decoder := w.policy, domain.Decoder{}
	for _, option := range options {
		option(&policy, &decoder)
	}
	d := &desk{w: w, seam: newSeam(s, func() {})}
	d.Operator = domain.NewOperator(policy, decoder, d.seam, s, f, w.clock, slog.New(slog.DiscardHandler))
	return d
}

// letterID returns the id of the letter at the record's coordinates.
func (w *world) letterID(r domain.Record) (id int64) {
	w.t.Helper()
	w.scan(`SELECT id FROM dead_letter WHERE partition = $1 AND "offset" = $2`, []any{r.Partition, r.Offset}, &id)
	return id
}

// letterState returns the state and the reason of the letter of a record.
func (w *world) letterState(r domain.Record) (state domain.LetterState, reason domain.Reason) {
	w.t.Helper()
	w.scan(`SELECT state, reason FROM dead_letter WHERE partition = $1 AND "offset" = $2`, []any{r.Partition, r.Offset}, &state, &reason)
	return state, reason
}

func (d *desk) replay(r domain.Record) (domain.Done, error) {
	d.w.t.Helper()
	return d.Replay(d.w.t.Context(), d.w.letterID(r), "alice", "the cause is mended")
}

func (d *desk) mustReplay(r domain.Record, want domain.Result) domain.Done {
	d.w.t.Helper()
	done, err := d.replay(r)
	require.NoError(d.w.t, err)
	require.Equal(d.w.t, want, done.Result)
	return done
}

func (d *desk) discard(r domain.Record, outcome domain.Outcome) (domain.Done, error) {
	d.w.t.Helper()
	return d.Discard(d.w.t.Context(), domain.Instruction{LetterID: d.w.letterID(r), By: "alice", Why: "given up", Outcome: outcome})
}

func (d *desk) mustDiscard(r domain.Record, outcome domain.Outcome, want domain.Result) {
	d.w.t.Helper()
	done, err := d.discard(r, outcome)
	require.NoError(d.w.t, err)
	require.Equal(d.w.t, want, done.Result)
}

// actionRow is a line of the audit trail.
type actionRow struct {
	Action, Actor, Reason, Outcome, Result string
}

func (w *world) actions() []actionRow {
	w.t.Helper()
	return collect[actionRow](w, `SELECT action, actor, reason, coalesce(outcome, '') AS outcome, result FROM letter_action ORDER BY id`)
}

// conflict requires that the action was refused for the state of things.
func conflict(t *testing.T, err error, why string) {
	t.Helper()
	var refused *domain.ConflictError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, why)
}

// parked returns an event that ended in a letter: what it may have been sent for
// is told by the answer.
func parked(w *world, i *instance, answers ...step) event {
	w.t.Helper()
	a := w.event(1, "10.50")
	w.provider.script(a.id, answers...)
	i.mustBill(a.record)
	return a
}

func TestReplayedLetterIsChargedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first  step
		was    string
		posts  int
		revive string
	}{
		"that was surely not charged": {rejects, "held", 2, "waiting"},
		"that may have been charged":  {conflicts, "parked", 2, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, d := w.instance("one"), w.desk()
			a := parked(w, one, tt.first)
			require.Equal(t, tt.was, w.intent(a).State)

			done := d.mustReplay(a.record, domain.ResultSentRound)
			require.Equal(t, domain.LetterReplayed, done.Letter.State)
			in := w.intent(a)
			require.Equal(t, tt.revive, in.State)
			require.True(t, in.DueAt.Equal(w.clock.Now()))
			require.Equal(t, []actionRow{{"replay", "alice", "the cause is mended", "", "sent_round"}}, w.actions())
			w.balanced()

			one.settle()
			w.final(a, "captured")
			require.Equal(t, tt.posts, w.provider.postsOf(a.id))
			state, _ := w.letterState(a.record)
			require.Equal(t, domain.LetterResolved, state, "its charge became final")
			w.balanced()
		})
	}
}

// Money that was taken is not taken again: the provider's key guards the replay,
// and a letter whose charge became final meanwhile has nothing to replay.
func TestReplayOfAChargedEventChargesNothing(t *testing.T) {
	t.Parallel()
	t.Run("whose answer was lost", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one"), w.desk()
		a := parked(w, one, losing(captures), conflicts)
		w.clock.advance(time.Minute)
		one.settle()
		require.Equal(t, "parked", w.intent(a).State)
		d.mustReplay(a.record, domain.ResultSentRound)
		one.settle()
		w.final(a, "captured")
		require.Equal(t, 1, w.provider.capturesOf(a.id))
		w.balanced()
	})
	t.Run("whose answer came late", func(t *testing.T) {
		t.Parallel()
		l := newTwoLeases(t, captures, conflicts)
		l.answer(l.two, l.second)
		require.Equal(t, "parked", l.intent(l.event).State)
		l.answer(l.one, l.first)
		l.final(l.event, "captured")
		_, err := l.desk().replay(l.event.record)
		conflict(t, err, "not open: resolved")
		require.Equal(t, 1, l.provider.capturesOf(l.event.id))
		l.balanced()
	})
	// The surprise is about an event that is final: the letter is closed, no more.
	t.Run("that is final otherwise", func(t *testing.T) {
		t.Parallel()
		l := newTwoLeases(t, captures, replies(domain.Answer{Kind: domain.Declined, Status: 402}))
		l.answer(l.two, l.second)
		l.answer(l.one, l.first)
		l.letter(l.event.record, domain.ReasonNeedsReconciliation)
		l.desk().mustReplay(l.event.record, domain.ResultClosed)
		l.b.settle()
		l.final(l.event, "declined")
		state, _ := l.letterState(l.event.record)
		require.Equal(t, domain.LetterResolved, state)
		l.balanced()
	})
}

// A capture that comes while the replayed charge is under way ends it, and its
// letter with it.
func TestLateCaptureResolvesTheReplayedLetter(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, conflicts)
	l.answer(l.two, l.second)
	l.desk().mustReplay(l.event.record, domain.ResultSentRound)
	l.answer(l.one, l.first)
	l.final(l.event, "captured")
	state, _ := l.letterState(l.event.record)
	require.Equal(t, domain.LetterResolved, state)
	l.balanced()
}

// The letter that tells of money taken after the event was given up is not
// resolved by the very transaction that writes it.
func TestSurpriseReopensTheDiscardedLetterAndItStaysOpen(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, conflicts)
	l.answer(l.two, l.second)
	l.desk().mustDiscard(l.event.record, domain.OutcomeNotCharged, domain.ResultDiscarded)
	l.answer(l.one, l.first)
	surprised(l.world, l.event, l.a)
	l.final(l.event, "discarded")
	l.balanced()
}

// Somebody wrote a charge beside the parked intent by hand: the transaction that
// ends the intent tells of the surprise too, and must not resolve its own letter.
func TestSurpriseThatEndsAParkedIntentLeavesItsLetterOpen(t *testing.T) {
	t.Parallel()
	l := newTwoLeases(t, captures, conflicts)
	l.answer(l.two, l.second)
	require.Equal(t, "parked", l.intent(l.event).State)
	l.exec(`INSERT INTO charge (event_id, order_id, customer_id, amount, currency, status, attempts, claims_order,
			occurred_at, settled_at, fingerprint, source_topic, source_partition, source_offset)
		SELECT event_id, order_id, 7, 10.50, 'EUR', 'declined', 2, false, now(), now(), fingerprint, source_topic, source_partition, source_offset
		FROM charge_intent WHERE event_id = $1`, l.event.id)
	l.answer(l.one, l.first)
	l.final(l.event, "declined")
	surprised(l.world, l.event, l.a)
}

func TestReplayStartsANewHorizonButNoNewKeyAge(t *testing.T) {
	t.Parallel()
	t.Run("the horizon", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one"), w.desk()
		a := w.event(1, "10.50")
		w.provider.script(a.id, endless(refuses)...)
		one.mustBill(a.record)
		retried(w, one)
		require.Equal(t, "held", w.intent(a).State)
		d.mustReplay(a.record, domain.ResultSentRound)
		one.settle()
		require.Equal(t, "waiting", w.intent(a).State, "it is not parked again at once")
		w.clock.advance(w.policy.RetryHorizon - time.Minute)
		one.settle()
		require.Equal(t, "waiting", w.intent(a).State)
		w.clock.advance(time.Hour)
		one.settle()
		require.Equal(t, "held", w.intent(a).State)
		w.letter(a.record, domain.ReasonRetriesExhausted) // the same row, open again
		w.balanced()
	})
	// The event went through, its answer was lost, and the provider may have
	// forgotten its key: it is not sent blindly, replayed or not.
	t.Run("the key", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one"), w.desk()
		a := w.event(1, "10.50")
		w.provider.script(a.id, append([]step{losing(captures)}, endless(times)...)...)
		one.mustBill(a.record)
		retried(w, one)
		require.Equal(t, "parked", w.intent(a).State)
		posts := w.provider.postsOf(a.id)
		w.clock.advance(w.policy.KeyTTL)

		plan, err := d.Plan(t.Context(), domain.Instruction{LetterID: w.letterID(a.record), Kind: domain.ActionReplay, By: "alice"})
		require.NoError(t, err)
		require.Contains(t, plan.Forward, "parks again as needs_reconciliation")
		d.mustReplay(a.record, domain.ResultSentRound)
		one.settle()
		require.Equal(t, "parked", w.intent(a).State)
		w.letter(a.record, domain.ReasonNeedsReconciliation)
		require.Equal(t, posts, w.provider.postsOf(a.id))
		require.Equal(t, 1, w.provider.capturesOf(a.id))
		w.balanced()
	})
}

func TestReplayNeedsBothRowsAsTheyWereRead(t *testing.T) {
	t.Parallel()
	t.Run("a letter that is not there", func(t *testing.T) {
		t.Parallel()
		_, err := newWorld(t).desk().Replay(t.Context(), 17, "alice", "")
		require.ErrorIs(t, err, domain.ErrNoLetter)
	})
	t.Run("an intent that is under way", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := parked(w, w.instance("one"), rejects)
		w.exec("UPDATE charge_intent SET state = 'waiting'")
		_, err := w.desk().replay(a.record)
		conflict(t, err, "under way")
		require.Empty(t, w.actions(), "nothing was done")
	})
	t.Run("a claim that is not committed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := parked(w, w.instance("one"), rejects)
		w.exec("UPDATE charge_intent SET claimed = false")
		d := w.desk()
		_, err := d.replay(a.record)
		conflict(t, err, "not through yet")
		_, err = d.discard(a.record, domain.OutcomeNotCharged)
		conflict(t, err, "not through yet")
		require.Equal(t, "held", w.intent(a).State)
	})
	t.Run("a letter that changed while it was decided about", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := parked(w, w.instance("one"), rejects)
		d := w.desk()
		d.seam.once(sideLooked, func() error {
			w.exec("UPDATE dead_letter SET state = 'resolved'")
			return nil
		})
		_, err := d.replay(a.record)
		conflict(t, err, "at the same moment")
		require.Equal(t, "held", w.intent(a).State, "neither row is changed without the other")
		require.Empty(t, w.actions())
	})
}

// What an operator sees before it acts is what would happen, and nothing has.
func TestDryRunDecidesAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := parked(w, w.instance("one"), rejects)
	d := w.desk()
	before := w.intent(a)
	i := domain.Instruction{LetterID: w.letterID(a.record), Kind: domain.ActionReplay, By: "alice"}
	plan, err := d.Plan(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, domain.ResultSentRound, plan.Result)
	require.Equal(t, "sent to the provider", plan.Forward)
	require.Equal(t, a.record.Coordinates, plan.Processed.Source)
	require.Equal(t, domain.Held, plan.Intent.State)
	require.Equal(t, "not asked", plan.Provider.String())
	i.Kind, i.Why = domain.ActionDiscard, "given up"
	plan, err = d.Plan(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, domain.ResultDiscarded, plan.Result)

	require.Equal(t, before, w.intent(a))
	w.letter(a.record, domain.ReasonProviderRejected)
	require.Empty(t, w.actions())
	w.balanced()
}
