package protocol_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// strict is a desk of a service that asks for UUIDs of version 7.
func strict(_ *domain.Policy, d *domain.Decoder) { d.RequireV7 = true }

// poison parks the record of a valid event as invalid, as a service does that is
// configured, or built, so that it cannot read it.
func poison(w *world, e event) {
	w.t.Helper()
	w.exec(`INSERT INTO dead_letter (topic, partition, "offset", consumer_group, record_timestamp, key, value, reason, detail, state, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'invalid_event_id_not_v7', 'eventId: UUID version 4 where 7 is required', 'open', $5, $5)`,
		e.record.Topic, e.record.Partition, e.record.Offset, group, w.clock.Now(), e.record.Key, e.record.Value)
	w.exec(`INSERT INTO dedup_stat VALUES ($1, $2, $3, $4, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)
		ON CONFLICT (consumer_group, topic, partition, minute) DO UPDATE SET received = dedup_stat.received + 1, invalid = dedup_stat.invalid + 1`,
		group, e.record.Topic, e.record.Partition, w.clock.Now())
	w.toldByHand(e.record)
}

func TestPoisonRecordReplayedAfterItsCauseWasFixedIsChargedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.eventOf(uuid.New(), 1, "10.50") // version 4
	poison(w, a)

	w.desk(strict).mustReplay(a.record, domain.ResultStillInvalid)
	state, reason := w.letterState(a.record)
	require.Equal(t, domain.LetterOpen, state, "its cause is still there")
	require.Equal(t, domain.ReasonEventIDNotV7, reason)
	require.Empty(t, w.intents(a))

	d := w.desk()
	done := d.mustReplay(a.record, domain.ResultRecovered)
	require.Equal(t, a.id, done.Letter.EventID)
	w.balanced()
	one.settle()
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	state, _ = w.letterState(a.record)
	require.Equal(t, domain.LetterResolved, state)
	n := w.counters()
	require.EqualValues(t, 1, n.Received, "it was received when it came")
	require.EqualValues(t, 1, n.Recovered)
	require.Zero(t, n.Processed)
	w.balanced()

	one.mustBill(a.record) // the offsets were reset, to a service that reads it now
	one.settle()
	require.Equal(t, 1, w.provider.postsOf(a.id))
	_, err := d.replay(a.record)
	conflict(t, err, "not open")
	require.Equal(t, []actionRow{
		{"replay", "alice", "the cause is mended", "", "still_invalid"},
		{"replay", "alice", "the cause is mended", "", "recovered"},
	}, w.actions())
	w.balanced()
}

// A recovered event parks like any other, in its own row, and is replayed again.
func TestRecoveredEventThatParksReopensItsLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	a := w.event(1, "10.50")
	poison(w, a)
	w.provider.script(a.id, rejects)
	d.mustReplay(a.record, domain.ResultRecovered)
	one.settle()
	letter := w.letter(a.record, domain.ReasonProviderRejected)
	require.Equal(t, a.id, *letter.EventID)
	w.balanced()
	d.mustReplay(a.record, domain.ResultSentRound)
	one.settle()
	w.final(a, "captured")
	w.balanced()
}

// The same event came again in a record that could be read: the letter is about
// an event that is known.
func TestRecoveredRecordOfAKnownEventIsADuplicate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		forget bool
		amount string
		result domain.Result
		state  domain.LetterState
		reason domain.Reason
	}{
		"of the same meaning":       {false, "10.50", domain.ResultDuplicate, domain.LetterResolved, domain.ReasonEventIDNotV7},
		"forgotten by the dedup":    {true, "10.50", domain.ResultDuplicate, domain.LetterResolved, domain.ReasonEventIDNotV7},
		"of another meaning":        {false, "10.51", domain.ResultConflicting, domain.LetterOpen, domain.ReasonConflictingPayload},
		"of another, and forgotten": {true, "10.51", domain.ResultConflicting, domain.LetterOpen, domain.ReasonConflictingPayload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, d := w.instance("one"), w.desk()
			a := w.event(1, "10.50")
			one.mustBill(a.record)
			again := a
			again.record = w.altered(a, tt.amount)
			poison(w, again)
			if tt.forget {
				w.exec("DELETE FROM processed_event")
			}
			var claims int
			w.scan("SELECT count(*) FROM processed_event", nil, &claims)
			d.mustReplay(again.record, tt.result)
			state, reason := w.letterState(again.record)
			require.Equal(t, tt.state, state)
			require.Equal(t, tt.reason, reason)
			one.settle()
			require.Equal(t, 1, w.provider.postsOf(a.id))
			require.Zero(t, w.counters().Recovered)
			w.balanced()

			if tt.result == domain.ResultConflicting {
				d.mustReplay(again.record, domain.ResultClosed)
				state, _ = w.letterState(again.record)
				require.Equal(t, domain.LetterResolved, state)
				var after int
				w.scan("SELECT count(*) FROM processed_event", nil, &after)
				require.Equal(t, claims, after, "another meaning claims nothing")
			}
		})
	}
}

// A batch opened the event's intent, charged and died: the claim by replay finds
// it, and its answer.
func TestRecoveredEventFinishesWhatALostBatchBegan(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]step{"answered": captures, "unanswered": losing(captures)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, d := w.instance("one"), w.desk()
			a := abandoned(w, one, lost)
			poison(w, a)
			w.clock.advance(w.policy.Lease)
			d.mustReplay(a.record, domain.ResultRecovered)
			one.settle()
			w.final(a, "captured")
			require.Equal(t, 1, w.provider.capturesOf(a.id))
			state, _ := w.letterState(a.record)
			require.Equal(t, domain.LetterResolved, state)
			w.balanced()
		})
	}
}

func TestRecoveredEventOfACapturedOrderIsADuplicateOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	one.mustBill(a.record)
	poison(w, b)
	done := d.mustReplay(b.record, domain.ResultRecovered)
	require.Contains(t, done.Forward, "duplicate_order")
	one.settle()
	w.final(b, "duplicate_order")
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}

// A discard is about the event, where the bytes hold one by now: else a reset of
// the offsets would charge what was given up.
func TestDiscardOfAnInvalidRecordGivesItsEventUp(t *testing.T) {
	t.Parallel()
	t.Run("which can be read by now", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one"), w.desk()
		a := w.event(1, "10.50")
		poison(w, a)
		_, err := d.discard(a.record, domain.OutcomeCharged)
		require.ErrorContains(t, err, "never sent")
		d.mustDiscard(a.record, "", domain.ResultDiscarded)
		w.final(a, "discarded")
		w.balanced()
		one.mustBill(a.record)
		one.settle()
		require.Zero(t, w.provider.postsOf(a.id))
		w.balanced()
	})
	t.Run("which cannot be read", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one"), w.desk()
		a := w.event(1, "10.50")
		a.record.Value = bytes.Replace(a.record.Value, []byte("EUR"), []byte("eur"), 1)
		one.mustBill(a.record)
		d.mustDiscard(a.record, "", domain.ResultClosed)
		state, _ := w.letterState(a.record)
		require.Equal(t, domain.LetterDiscarded, state)
		one.mustBill(a.record)
		state, _ = w.letterState(a.record)
		require.Equal(t, domain.LetterDiscarded, state, "a redelivery opens nothing again")
		require.Len(t, w.letters(), 1)
		w.balanced()
	})
}

func TestConflictingLetterIsClosedAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]struct {
		do    func(*desk, domain.Record) (domain.Done, error)
		state domain.LetterState
	}{
		"by replay":  {(*desk).replay, domain.LetterResolved},
		"by discard": {func(d *desk, r domain.Record) (domain.Done, error) { return d.discard(r, "") }, domain.LetterDiscarded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, d := w.instance("one"), w.desk()
			a := w.event(1, "10.50")
			w.provider.script(a.id, refuses)
			other := w.altered(a, "99.00")
			one.mustBill(a.record)
			one.mustBill(other)
			before := w.intent(a)
			done, err := act.do(d, other)
			require.NoError(t, err)
			require.Equal(t, domain.ResultClosed, done.Result)
			require.Contains(t, done.Forward, "the event goes by its first record")
			state, _ := w.letterState(other)
			require.Equal(t, act.state, state)
			require.Equal(t, before, w.intent(a), "the event goes on by its own record")
			w.balanced()
		})
	}
}

// finder is a provider that can be asked.
type finder struct{ found domain.Found }

// Find implements [domain.Finder].
func (f finder) Find(context.Context, uuid.UUID) (domain.Found, error) { return f.found, nil }

func TestPlanAsksTheProviderWhereItCanBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := parked(w, w.instance("one"), conflicts)
	d := w.deskWith(finder{domain.Found{Known: true, Status: domain.ChargeCaptured}})
	plan, err := d.Plan(t.Context(), domain.Instruction{LetterID: w.letterID(a.record), Kind: domain.ActionReplay, By: "alice"})
	require.NoError(t, err)
	require.Equal(t, "captured", plan.Provider.String())
	require.Equal(t, "sent again under the same key", plan.Forward)
}

// pacer counts the letters that were waited for, and ends after some.
type pacer struct{ left int }

// Wait implements [domain.Pacer].
func (p *pacer) Wait(context.Context) error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestBulkReplayTakesTheOldestOpenLettersOfItsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, d := w.instance("one"), w.desk()
	var events []event
	for n := range int64(5) {
		e := w.event(n+1, "10.50")
		w.provider.script(e.id, rejects)
		events = append(events, e)
		one.mustBill(e.record)
	}
	odd := w.event(9, "10.50")
	w.provider.script(odd.id, conflicts)
	one.mustBill(odd.record)
	d.mustDiscard(events[0].record, "", domain.ResultDiscarded)

	filter := domain.LetterFilter{Reason: domain.ReasonProviderRejected, Limit: 2}
	var told []int64
	tell := func(b domain.Bulk) {
		require.NoError(t, b.Err)
		require.Equal(t, domain.ResultSentRound, b.Plan.Result)
		told = append(told, b.LetterID)
	}
	pace := &pacer{left: 100}
	require.NoError(t, d.ReplayAll(t.Context(), filter, "alice", "mended", true, pace, tell))
	require.Equal(t, []int64{w.letterID(events[1].record), w.letterID(events[2].record)}, told)
	require.Equal(t, "held", w.intent(events[1]).State, "a dry run changes nothing")

	told = nil
	require.NoError(t, d.ReplayAll(t.Context(), filter, "alice", "mended", false, pace, tell))
	require.Equal(t, 96, pace.left)
	one.settle()
	for n, want := range []string{"discarded", "captured", "captured", "", ""} {
		require.Equal(t, want, w.status(events[n]), n)
	}
	told = nil
	require.ErrorIs(t, d.ReplayAll(t.Context(), filter, "alice", "mended", false, &pacer{left: 1}, tell), context.Canceled)
	require.Len(t, told, 1)
	require.Equal(t, "parked", w.intent(odd).State)
	w.balanced()
}
