package domain

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestANewIntentIsOfItsRecordAndWaitsUnclaimed(t *testing.T) {
	t.Parallel()
	e := &Event{ID: uuid.New(), OrderID: 42, CustomerID: 7, Total: tenEuros, TraceParent: "tp", TraceState: "ts"}
	record := &Record{Coordinates: Coordinates{Topic: "t", Partition: 1, Offset: 2}, Value: []byte("v")}
	request := e.Request()
	require.Equal(t, Intent{
		EventID: e.ID, OrderID: 42, RequestHash: request.Hash(), Fingerprint: e.Fingerprint(), State: Waiting,
		DueAt: noon, CreatedAt: noon, Group: "g", Record: *record, TraceParent: "tp", TraceState: "ts",
	}, newIntent(e, record, "g", noon))
}

func TestALeaseIsFreshReservesItsAttemptsAndIsDueFromTheStart(t *testing.T) {
	t.Parallel()
	for state, assumed := range map[IntentState]bool{Waiting: false, Calling: true, UnknownOutcome: true} {
		_, in := leased()
		in.State, in.MaybeSent, in.FirstAttemptAt = state, false, time.Time{}
		before := *in
		in.lease(&bounds, noon)
		require.NotEqual(t, before.Token, in.Token, "fresh for every lease, of the same owner too")
		require.NotEqual(t, uuid.Nil, in.Token)
		require.Equal(t, "me", in.Owner)
		require.Equal(t, noon.Add(bounds.Lease), in.LeaseUntil)
		require.Equal(t, in.LeaseUntil, in.DueAt)
		require.Equal(t, before.Attempts+bounds.QuickAttempts, in.Attempts)
		require.Equal(t, noon, in.FirstAttemptAt)
		require.Equal(t, assumed, in.MaybeSent, "who had a %s intent may have sent", state)
		requirePossible(t, in)

		first := *in
		in.lease(&bounds, noon.Add(time.Hour))
		require.Equal(t, noon, in.FirstAttemptAt, "the first attempt stays the first")
		require.Equal(t, first.Attempts+bounds.QuickAttempts, in.Attempts)
		require.True(t, in.MaybeSent, "a take-over assumes a send")
	}
}

func TestOnlyTheTokenOfALiveLeaseOrAnswerOwns(t *testing.T) {
	t.Parallel()
	var none *Intent
	require.False(t, none.ownedBy(uuid.Nil))
	for state, owns := range map[IntentState]bool{
		Waiting: false, Calling: true, UnknownOutcome: false, Answered: true, Parked: false, Held: false,
	} {
		in := Intent{State: state, Token: uuid.New()}
		require.Equal(t, owns, in.ownedBy(in.Token), state)
		require.False(t, in.ownedBy(uuid.New()), state)
	}
}

func TestStatesSayWhoWaitsAndWhoClaims(t *testing.T) {
	t.Parallel()
	for state, want := range map[IntentState]struct{ dead, claims bool }{
		Waiting: {false, false}, Calling: {false, true}, UnknownOutcome: {false, true},
		Answered: {false, true}, Parked: {true, true}, Held: {true, false},
	} {
		require.Equal(t, want.dead, state.Dead(), state)
		require.Equal(t, want.claims, state.ClaimsOrder(), state)
	}
}

// The hash is stored: one that changes with a deploy would park every open charge.
func TestTheHashOfARequestIsItsPayloadAndStaysTheSame(t *testing.T) {
	t.Parallel()
	base := ChargeRequest{EventID: uuid.New(), OrderID: 42, Amount: tenEuros}
	same := base
	same.EventID, same.TraceParent, same.TraceState = uuid.New(), "tp", "ts"
	require.Equal(t, base.Hash(), same.Hash(), "the key and the trace are not payload")
	for name, other := range map[string]ChargeRequest{
		"order":    {OrderID: 43, Amount: tenEuros},
		"amount":   {OrderID: 42, Amount: Money{minor: 1001, currency: tenEuros.currency}},
		"currency": {OrderID: 42, Amount: Money{minor: 1000, currency: Currency{code: "USD", exponent: 2}}},
	} {
		require.NotEqual(t, base.Hash(), other.Hash(), name)
	}
	const golden = "e9d7244a054e10533142c0a947d268a79dcccb16633d93cb1fd4d78f75b15c85"
	hash := base.Hash()
	require.Equal(t, golden, hex.EncodeToString(hash[:]))
}

func TestAnswerKindsHaveNamesThatAreReadBack(t *testing.T) {
	t.Parallel()
	definite := map[AnswerKind]bool{Captured: true, Declined: true, Rejected: true, KeyConflict: true}
	for kind := Unknown; kind <= Misconfigured; kind++ {
		require.NotEmpty(t, kind.String())
		back, err := ParseAnswerKind(kind.String())
		require.NoError(t, err)
		require.Equal(t, kind, back)
		require.Equal(t, definite[kind], kind.Definite(), kind)
	}
	_, err := ParseAnswerKind("paid")
	require.ErrorContains(t, err, `"paid"`)
	require.Equal(t, Unknown, Answer{}.Kind, "an answer that nobody filled in means the worst")
}
