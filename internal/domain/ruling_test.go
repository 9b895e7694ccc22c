package domain

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// A capture counts in whatever state it finds its intent: the lease may have
// passed on, and the letter may have been written.
func TestALateCaptureIsWrittenInEveryState(t *testing.T) {
	t.Parallel()
	for _, state := range []IntentState{Waiting, Calling, UnknownOutcome, Answered, Parked, Held} {
		e, in := leased()
		in.State, in.Claimed = state, true
		r := newRuling(&bounds, noon)
		r.settle(situation{event: e, intent: in, record: &in.Record, claims: true}, uuid.New(), Answer{Kind: Captured, ProviderChargeID: "ch"})
		require.Equal(t, []Charge{{
			EventID: e.ID, OrderID: 42, CustomerID: 7, Amount: tenEuros, Status: ChargeCaptured, ClaimsOrder: true, ProviderChargeID: "ch",
			Attempts: 3, OccurredAt: e.OccurredAt, SettledAt: noon, Fingerprint: in.Fingerprint, Source: in.Record.Coordinates,
			IntendedAt: noon.Add(-30 * time.Second), FirstAttemptAt: noon.Add(-30 * time.Second),
		}}, r.writes.Charges, state)
		require.Len(t, r.writes.Delete, 1)
		require.Equal(t, e.ID, r.writes.Delete[0].EventID)
		require.Equal(t, state.Dead(), len(r.resolve) == 1, "the letter of a %s intent is resolved with it", state)
	}
}

func TestAnAnswerSettlesItsAttempts(t *testing.T) {
	t.Parallel()
	firstTry := noon.Add(-30 * time.Second)
	for name, tc := range map[string]struct {
		answer    Answer
		sent      bool // by an earlier lease
		attempts  int  // of three reserved, on top of four made before
		maybeSent bool
		first     time.Time
	}{
		"one of three is used":                        {Answer{Kind: Unknown, Posts: 1}, false, 5, true, firstTry},
		"all three are used":                          {Answer{Kind: Unknown, Posts: 3}, false, 7, true, firstTry},
		"nothing was sent":                            {Answer{Kind: NotSent}, false, 4, false, time.Time{}},
		"nothing was sent now, but earlier":           {Answer{Kind: NotSent}, true, 4, true, firstTry},
		"withheld":                                    {Answer{Kind: Withheld}, false, 4, false, time.Time{}},
		"withheld after an earlier lease's attempt":   {Answer{Kind: Withheld}, true, 4, true, firstTry},
		"a refusal of us is no attempt":               {Answer{Kind: Misconfigured, Posts: 1}, false, 4, false, time.Time{}},
		"an attempt before the refusal is one":        {Answer{Kind: Misconfigured, Posts: 2, MaybeSent: true}, false, 5, true, firstTry},
		"a redirect refuses us and may have charged":  {Answer{Kind: Misconfigured, Posts: 1, MaybeSent: true}, false, 4, true, firstTry},
		"not sent, after one that may have been":      {Answer{Kind: NotSent, Posts: 1, MaybeSent: true}, false, 5, true, firstTry},
		"rejected at once":                            {Answer{Kind: Rejected, Posts: 1}, false, 5, false, firstTry},
		"rejected after an attempt without an answer": {Answer{Kind: Rejected, Posts: 2, MaybeSent: true}, false, 6, true, firstTry},
		"a key conflict may be our own earlier one":   {Answer{Kind: KeyConflict, Posts: 1}, false, 5, true, firstTry},
		"a decline is nothing unknown":                {Answer{Kind: Declined, Posts: 1}, false, 5, false, firstTry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, in := leased()
			in.Attempts, in.MaybeSent = 4+bounds.QuickAttempts, tc.sent
			tc.answer.Detail = "why"
			in.spend(&bounds, tc.answer)
			require.Equal(t, tc.attempts, in.Attempts)
			require.Equal(t, tc.maybeSent, in.MaybeSent)
			require.Equal(t, tc.first, in.FirstAttemptAt)
			require.Equal(t, "why", in.LastError)
		})
	}
}

func TestAStoredAnswerHasSettledItsAttemptsBefore(t *testing.T) {
	t.Parallel()
	_, in := leased()
	in.State, in.Attempts = Answered, 5
	in.spend(&bounds, Answer{Kind: Declined, Posts: 2})
	require.Equal(t, 5, in.Attempts)
}

// An answer that is put down first and acted on later ends as if it had been
// acted on at once.
func TestAnswersPutDownFirstEndAlike(t *testing.T) {
	t.Parallel()
	for kind, want := range map[AnswerKind]decision{
		Captured:    {intent: "gone", charge: ChargeCaptured},
		Declined:    {intent: "gone", charge: ChargeDeclined},
		Rejected:    {intent: "held", letter: ReasonProviderRejected},
		KeyConflict: {intent: "parked", letter: ReasonIdempotencyConflict},
	} {
		e, in := leased()
		record := in.Record
		first := newRuling(&bounds, noon)
		first.settle(situation{event: e, intent: in, record: &record}, in.Token, Answer{Kind: kind, Posts: 1})
		require.Equal(t, decision{intent: "answered", due: "now"}, decided(t, first, e, record))
		kept := first.writes.Update[0]
		require.Equal(t, 1, kept.Attempts)

		second := newRuling(&bounds, noon)
		second.settle(situation{event: e, intent: &kept, record: &record, claims: true}, kept.Token, *kept.Answer)
		require.Equal(t, want, decided(t, second, e, record), kind)
	}
}

func TestAnIntentWithoutAnAnswerIsDueAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer      Answer
		elapsed     time.Duration // since the first attempt
		least, most time.Duration // from now
	}{
		"at once when we stopped it":              {Answer{Kind: Withheld, RetryAfter: time.Hour}, time.Hour, 0, 0},
		"at once when we are refused":             {Answer{Kind: Misconfigured, RetryAfter: time.Hour}, time.Hour, 0, 0},
		"after a second at first":                 {Answer{Kind: Unknown}, 0, 750 * time.Millisecond, time.Second},
		"after as long again":                     {Answer{Kind: Unknown}, time.Minute, 45 * time.Second, time.Minute},
		"after ten minutes at most":               {Answer{Kind: Unknown}, 5 * time.Hour, 450 * time.Second, 10 * time.Minute},
		"when the provider says":                  {Answer{Kind: Unknown, RetryAfter: 7 * time.Second}, time.Hour, 7 * time.Second, 7 * time.Second},
		"after an hour, though it says a day":     {Answer{Kind: Unknown, RetryAfter: 24 * time.Hour}, 0, time.Hour, time.Hour},
		"never in the past, whatever was said":    {Answer{Kind: Unknown, RetryAfter: -time.Hour}, 0, 750 * time.Millisecond, time.Second},
		"when the clock went back since the call": {Answer{Kind: Unknown}, -time.Hour, 750 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 200 {
				e, in := leased()
				in.FirstAttemptAt = noon.Add(-tc.elapsed)
				in.MaybeSent = true
				r := newRuling(&bounds, noon)
				r.settle(situation{event: e, intent: in, record: &in.Record, claims: true}, in.Token, tc.answer)
				pause := r.writes.Update[0].DueAt.Sub(noon)
				require.GreaterOrEqual(t, pause, tc.least)
				require.LessOrEqual(t, pause, tc.most)
			}
		})
	}
}

func TestAWaitingSiblingLooksAgainSoonAndGivesUpAtTheHorizon(t *testing.T) {
	t.Parallel()
	for elapsed, most := range map[time.Duration]time.Duration{
		0: 250 * time.Millisecond, 20 * time.Second: 5 * time.Second, time.Hour: 10 * time.Second,
	} {
		e, record := &Event{ID: uuid.New(), OrderID: 1, Total: tenEuros}, &Record{}
		in := newIntent(e, record, "g", noon.Add(-elapsed))
		r := newRuling(&bounds, noon)
		r.postpone(&in)
		require.Len(t, r.writes.Insert, 1)
		require.Empty(t, r.letters)
		require.Equal(t, Waiting, r.writes.Insert[0].State)
		require.InDelta(t, most*7/8, r.writes.Insert[0].DueAt.Sub(noon), float64(most/8))
	}
	_, in := leased()
	in.State, in.LeaseUntil, in.FirstAttemptAt, in.CreatedAt = Waiting, time.Time{}, time.Time{}, noon.Add(-bounds.RetryHorizon)
	r := newRuling(&bounds, noon)
	r.postpone(in)
	require.Equal(t, Held, r.writes.Update[0].State)
	require.Equal(t, ReasonRetriesExhausted, r.letters[0].Reason)
}

func TestAnEventOfATakenOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order     Charge
		maybeSent bool
		want      decision
	}{
		"of the same amount is a duplicate of it": {
			Charge{Status: ChargeCaptured, Amount: tenEuros}, false, decision{intent: "gone", charge: ChargeDuplicateOrder},
		},
		"of another amount conflicts": {
			Charge{Status: ChargeCaptured, Amount: Money{minor: 1001, currency: tenEuros.currency}},
			false,
			decision{intent: "held", letter: ReasonOrderConflict},
		},
		"of another currency conflicts": {
			Charge{Status: ChargeCaptured, Amount: Money{minor: 1000, currency: Currency{code: "USD", exponent: 2}}},
			false,
			decision{intent: "held", letter: ReasonOrderConflict},
		},
		"that an operator keeps claimed conflicts": {
			Charge{Status: ChargeDiscarded, Amount: tenEuros}, false, decision{intent: "held", letter: ReasonOrderConflict},
		},
		"that may have been charged itself is for a human": {
			Charge{Status: ChargeCaptured, Amount: tenEuros}, true, decision{intent: "parked", letter: ReasonNeedsReconciliation},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, in := leased()
			in.MaybeSent = tc.maybeSent
			r := newRuling(&bounds, noon)
			r.taken(situation{event: e, intent: in, order: &tc.order, claims: true})
			require.Equal(t, tc.want, decided(t, r, e, in.Record))
		})
	}
}

func TestRecordsThatWereParkedBeforeAreNotCountedAgain(t *testing.T) {
	t.Parallel()
	at := func(offset int64) Coordinates { return Coordinates{Topic: "t", Partition: 3, Offset: offset} }
	letter := func(offset int64, reason Reason, reopens bool) Letter {
		return Letter{Record: Record{Coordinates: at(offset)}, Reason: reason, Reopens: reopens}
	}
	r := newRuling(&bounds, noon)
	r.letters = []Letter{
		letter(1, ReasonJSON, false), letter(2, ReasonJSON, false), letter(3, ReasonConflictingPayload, false),
		letter(4, ReasonConflictingPayload, false), letter(5, ReasonRetriesExhausted, true),
		letter(6, ReasonJSON, false), letter(6, ReasonJSON, false), // twice in this batch
	}
	got := r.repeated(map[Coordinates]bool{at(1): true, at(3): true, at(6): true})
	require.Equal(t, Stats{
		// 2 and the second 6 were counted as invalid before; 4 is a redelivery of its letter.
		statKey("g", at(0), noon): {Received: -2, Invalid: -2, Conflicting: -1, Redelivered: 1},
	}, got)
}
