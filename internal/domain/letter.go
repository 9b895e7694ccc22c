package domain

import (
	"time"

	"github.com/google/uuid"
)

// LetterState is where a dead letter stands.
type LetterState string

// The states of a dead letter.
const (
	LetterOpen      LetterState = "open"      // waits for an operator
	LetterReplayed  LetterState = "replayed"  // an operator sent it round again
	LetterDiscarded LetterState = "discarded" // an operator closed it
	LetterResolved  LetterState = "resolved"  // its charge became final by itself
)

// LetterStates lists every state.
func LetterStates() []LetterState {
	return []LetterState{LetterOpen, LetterReplayed, LetterDiscarded, LetterResolved}
}

// Letter is a dead letter: a record that cannot be finished without an
// operator, with its bytes as they came and the reason.
type Letter struct {
	ID      int64
	Record  Record
	Reason  Reason
	Detail  string // at most 200 bytes, free of payload
	State   LetterState
	EventID uuid.UUID // uuid.Nil for an invalid record
	OrderID int64     // 0 for an invalid record
	Group   string
	At      time.Time // when it was first parked
	// ChangedAt is when its state, reason or detail last changed, At included; zero in
	// a letter that was not read from the store.
	ChangedAt time.Time
	// Reopens is set for letters of an event's own intent: parked once more, the
	// letter of its coordinates opens again. Others are written once.
	Reopens bool
}
