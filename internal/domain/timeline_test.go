package domain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// second returns the instant that many seconds after noon.
func second(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }

// told prints a timeline, a line for each moment.
func told(s *EventStory) []string {
	var lines []string
	for _, m := range s.Timeline() {
		words := []string{fmt.Sprintf("%d %s", int(m.At.Sub(noon)/time.Second), m.What)}
		add := func(is bool, word any) {
			if is {
				words = append(words, fmt.Sprint(word))
			}
		}
		add(m.Source != nil, m.Source)
		add(m.Group != "", m.Group)
		add(m.Duplicate != "", m.Duplicate)
		add(m.Attempts > 0, m.Attempts)
		add(m.LastError != "", m.LastError)
		add(m.Owner != "", m.Owner)
		add(m.State != "", m.State)
		if m.Answer != nil {
			words = append(words, m.Answer.Kind.String())
		}
		if m.Charge != nil {
			words = append(words, string(m.Charge.Status))
		}
		add(m.Reason != "", m.Reason)
		if m.Action != nil {
			words = append(words, m.Action.By, string(m.Action.Result))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// spot returns the coordinates of a record.
func spot(offset int64) Coordinates { return Coordinates{Topic: "t", Offset: offset} }

// seen returns a story whose event was claimed at noon.
func seen(with ...func(*EventStory)) *EventStory {
	s := &EventStory{
		EventID: uuid.New(), Group: "g", Sighting: &Sighting{Source: spot(1)}, ProcessedAt: new(noon),
	}
	for _, change := range with {
		change(s)
	}
	return s
}

func open(id int64, from, changed int, reason Reason, state LetterState) Letter {
	return Letter{
		ID: id, Reason: reason, State: state, At: second(from), ChangedAt: second(changed),
		Record: Record{Coordinates: spot(1)},
	}
}

func acted(letter int64, after int, kind ActionKind, result Result) Action {
	return Action{LetterID: letter, Kind: kind, By: "ann", Result: result, At: second(after)}
}

func TestAStoryIsToldInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	captured := &Charge{
		Status: ChargeCaptured, Attempts: 5, IntendedAt: second(1), FirstAttemptAt: second(1), SettledAt: second(30),
	}
	for name, test := range map[string]struct {
		story *EventStory
		want  []string
	}{
		"an event that was charged at once, all at one instant": {
			seen(func(s *EventStory) {
				s.Charge = &Charge{Status: ChargeCaptured, Attempts: 1, IntendedAt: noon, FirstAttemptAt: noon, SettledAt: noon}
				s.Duplicates = []Duplicate{{Kind: DuplicateRedelivered, Record: spot(1), SeenAt: noon}}
			}),
			[]string{
				"0 seen t/0@1", "0 claimed g", "0 intent_committed", "0 first_attempt", "0 attempts 1",
				"0 duplicate t/0@1 redelivered", "0 outcome 1 captured",
			},
		},
		"one that was parked, sent round and charged, while duplicates came": {
			seen(func(s *EventStory) {
				s.Charge = captured
				s.Letters = []Letter{open(1, 5, 30, ReasonProviderRejected, LetterResolved)}
				s.Actions = []Action{acted(1, 20, ActionReplay, ResultSentRound)}
				s.Duplicates = []Duplicate{ // newest first, as the archive gives them
					{Kind: DuplicateConflicting, Record: spot(9), SeenAt: second(40)},
					{Kind: DuplicateRepublished, Record: spot(8), SeenAt: second(10)},
				}
			}),
			[]string{
				"0 seen t/0@1", "0 claimed g", "1 intent_committed", "1 first_attempt", "1 attempts 5",
				"5 parked t/0@1 provider_rejected", "10 duplicate t/0@8 republished", "20 replayed ann sent_round",
				"30 outcome 5 captured", "30 resolved", "40 duplicate t/0@9 conflicting",
			},
		},
		"one that is being called": {
			seen(func(s *EventStory) {
				s.Intent = &Intent{
					State: Calling, CreatedAt: noon, FirstAttemptAt: noon, Attempts: 3, Owner: "billing-1", LeaseUntil: second(60),
				}
			}),
			[]string{
				"0 seen t/0@1", "0 claimed g", "0 intent_committed", "0 first_attempt", "0 attempts 3", "60 leased billing-1",
			},
		},
		"one without an answer": {
			seen(func(s *EventStory) {
				s.Intent = &Intent{
					State: UnknownOutcome, CreatedAt: noon, FirstAttemptAt: second(1), Attempts: 6, LastError: "timeout", DueAt: second(99),
				}
			}),
			[]string{
				"0 seen t/0@1", "0 claimed g", "0 intent_committed", "1 first_attempt", "1 attempts 6 timeout", "99 due unknown",
			},
		},
		"one whose attempts surely sent nothing": {
			seen(func(s *EventStory) {
				s.Intent = &Intent{State: Waiting, CreatedAt: second(1), Attempts: 2, LastError: "refused", DueAt: second(9)}
			}),
			[]string{"0 seen t/0@1", "0 claimed g", "1 intent_committed", "1 attempts 2 refused", "9 due waiting"},
		},
		"an answer that nobody has claimed yet": {
			&EventStory{Intent: &Intent{
				State: Answered, CreatedAt: noon, FirstAttemptAt: noon, Attempts: 1, DueAt: second(2), Answer: &Answer{Kind: Captured},
			}},
			[]string{"0 intent_committed", "0 first_attempt", "0 attempts 1", "2 answered captured"},
		},
		"one that was given up": {
			seen(func(s *EventStory) {
				s.Charge = &Charge{Status: ChargeDiscarded, IntendedAt: noon, SettledAt: second(50)}
				s.Letters = []Letter{open(1, 5, 50, ReasonOrderConflict, LetterDiscarded)}
				s.Actions = []Action{acted(1, 50, ActionDiscard, ResultDiscarded)}
			}),
			[]string{
				"0 seen t/0@1", "0 claimed g", "0 intent_committed", "5 parked t/0@1 order_conflict",
				"50 discarded ann discarded", "50 outcome discarded",
			},
		},
		"one that retention has forgotten: the log knows when it was seen": {
			&EventStory{
				Charge: &Charge{Status: ChargeDeclined, SettledAt: second(3)}, // of before these times were kept
				Duplicates: []Duplicate{
					{Kind: DuplicateRepublished, Record: spot(9), SeenAt: second(70)},
					{Kind: DuplicateConflicting, Record: spot(7), SeenAt: second(60), First: spot(8), FirstSeenAt: second(50)},
					{Kind: DuplicateRepublished, Record: spot(8), SeenAt: second(60), First: spot(1), FirstSeenAt: second(2)},
				},
			},
			[]string{
				"2 seen t/0@1", "3 outcome declined", "60 duplicate t/0@8 republished", "60 duplicate t/0@7 conflicting",
				"70 duplicate t/0@9 republished",
			},
		},
		"one that only a dead letter knows": {
			&EventStory{Letters: []Letter{open(7, 4, 4, ReasonConflictingPayload, LetterOpen)}},
			[]string{"4 parked t/0@1 conflicting_payload"},
		},
		"one that only the log knows": {
			&EventStory{Duplicates: []Duplicate{{Kind: DuplicateRedelivered, Record: spot(8), SeenAt: second(60)}}},
			[]string{"60 duplicate t/0@8 redelivered"},
		},
		"nothing": {&EventStory{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, told(test.story))
		})
	}
}

// The row of a letter keeps the reason of its latest parking: an earlier one is not
// given that reason.
func TestAReasonIsToldOfTheParkingThatItBelongsTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		letter  Letter
		actions []Action // newest first
		want    []string
	}{
		"parked again after a replay": {
			open(1, 1, 9, ReasonRetriesExhausted, LetterOpen),
			[]Action{acted(1, 5, ActionReplay, ResultSentRound)},
			[]string{"1 parked t/0@1", "5 replayed ann sent_round", "9 parked t/0@1 retries_exhausted"},
		},
		"a discarded one that money was taken for after all": {
			open(1, 1, 9, ReasonNeedsReconciliation, LetterOpen),
			[]Action{acted(1, 5, ActionDiscard, ResultDiscarded)},
			[]string{"1 parked t/0@1", "5 discarded ann discarded", "9 parked t/0@1 needs_reconciliation"},
		},
		"sent round twice: when it was parked in between is not kept": {
			open(1, 1, 9, ReasonRetriesExhausted, LetterReplayed),
			[]Action{acted(1, 9, ActionReplay, ResultSentRound), acted(1, 5, ActionReplay, ResultSentRound)},
			[]string{"1 parked t/0@1", "5 replayed ann sent_round", "9 replayed ann sent_round"},
		},
		"looked at again, and still invalid": {
			open(1, 1, 5, ReasonCurrency, LetterOpen),
			[]Action{acted(1, 5, ActionReplay, ResultStillInvalid)},
			[]string{"1 parked t/0@1", "5 replayed ann still_invalid"},
		},
		"sent round once, and on its way": {
			open(1, 1, 5, ReasonRetriesExhausted, LetterReplayed),
			[]Action{acted(1, 5, ActionReplay, ResultSentRound)},
			[]string{"1 parked t/0@1 retries_exhausted", "5 replayed ann sent_round"},
		},
		"another letter's replay is none of its": {
			open(1, 1, 1, ReasonRetriesExhausted, LetterOpen),
			[]Action{acted(2, 9, ActionReplay, ResultSentRound), acted(2, 5, ActionReplay, ResultSentRound)},
			[]string{"1 parked t/0@1 retries_exhausted", "5 replayed ann sent_round", "9 replayed ann sent_round"},
		},
		"closed by a replay": {
			open(1, 1, 5, ReasonConflictingPayload, LetterResolved),
			[]Action{acted(1, 5, ActionReplay, ResultClosed)},
			[]string{"1 parked t/0@1 conflicting_payload", "5 replayed ann closed", "5 resolved"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, told(&EventStory{Letters: []Letter{test.letter}, Actions: test.actions}))
		})
	}
}

func TestAStorySaysWhenTheLogMayHaveForgottenSome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		story EventStory
		want  bool
	}{
		"an empty log has forgotten nothing":                  {EventStory{ProcessedAt: new(noon)}, false},
		"nor has one that was never cut":                      {EventStory{ProcessedAt: new(noon), LogBegins: second(9)}, false},
		"a cut log that begins after the event":               {EventStory{ProcessedAt: new(noon), LogBegins: second(9), LogCut: true}, true},
		"a cut log that begins before it":                     {EventStory{ProcessedAt: new(noon), LogBegins: second(-9), LogCut: true}, false},
		"more in the log than is shown":                       {EventStory{ProcessedAt: new(noon), MoreDuplicates: true}, true},
		"a charge that knows when its intent was made, later": {EventStory{Charge: &Charge{IntendedAt: second(10)}, LogBegins: second(9), LogCut: true}, false},
		"a charge of nobody knows when":                       {EventStory{Charge: &Charge{}, LogBegins: second(9), LogCut: true}, true},
		"an intent from before":                               {EventStory{Intent: &Intent{CreatedAt: noon}, LogBegins: second(9), LogCut: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.story.MayLackDuplicates())
		})
	}
}
