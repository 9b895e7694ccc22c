package domain

import (
	"errors"
	"time"
)

// ActionKind is what an operator does to a dead letter.
type ActionKind string

// The kinds of action.
const (
	ActionReplay  ActionKind = "replay"
	ActionDiscard ActionKind = "discard"
)

// Outcome is what an operator found out at the provider about an event that is
// given up.
type Outcome string

// The outcomes that a discard may be given.
const (
	OutcomeNotCharged Outcome = "not_charged" // frees the order
	OutcomeCharged    Outcome = "charged"     // written down as captured outside
	OutcomeUnknown    Outcome = "unknown"     // keeps the order claimed for good
)

// Outcomes lists every outcome.
func Outcomes() []Outcome { return []Outcome{OutcomeNotCharged, OutcomeCharged, OutcomeUnknown} }

// Result is what came of an action.
type Result string

// The results.
const (
	// ResultSentRound: the charge is due now, and the worker goes on with it.
	ResultSentRound Result = "sent_round"
	// ResultRecovered: the record holds a valid event now, is claimed, and due.
	ResultRecovered Result = "recovered"
	// ResultDuplicate: the record holds a valid event now, which is known already.
	ResultDuplicate Result = "duplicate"
	// ResultConflicting: it holds one that is known with another meaning; the
	// letter stays open and says so.
	ResultConflicting Result = "conflicting"
	// ResultStillInvalid: the record holds no valid event yet; the letter stays open.
	ResultStillInvalid Result = "still_invalid"
	// ResultClosed: nothing could go on; the letter is closed, and nothing else.
	ResultClosed Result = "closed"
	// ResultDiscarded: the event ended as discarded.
	ResultDiscarded Result = "discarded"
	// ResultCaptured: the event ended as captured, outside of this service.
	ResultCaptured Result = "captured"
)

// Results lists every result.
func Results() []Result {
	return []Result{
		ResultSentRound, ResultRecovered, ResultDuplicate, ResultConflicting,
		ResultStillInvalid, ResultClosed, ResultDiscarded, ResultCaptured,
	}
}

// Action is one line of the audit trail of dead letters.
type Action struct {
	LetterID int64
	Kind     ActionKind
	By       string  // 1 to [MaxByBytes] bytes
	Why      string  // at most [MaxWhyBytes] bytes; never empty for a discard
	Outcome  Outcome // "" where none was given
	Result   Result
	At       time.Time
}

// Bounds of what people write.
const (
	MaxByBytes  = 100
	MaxWhyBytes = 500
)

// ErrNoLetter is returned for a dead letter that does not exist.
var ErrNoLetter = errors.New("there is no such dead letter")

// ConflictError says that a letter is not in the state that an action needs.
// Nothing was changed.
type ConflictError struct{ Detail string }

// Error returns why.
func (e *ConflictError) Error() string { return e.Detail }

// InputError says that an action lacks something or says something impossible.
// Nothing was changed.
type InputError struct{ Field, Detail string }

// Error returns "outcome: what is wrong".
func (e *InputError) Error() string { return e.Field + ": " + e.Detail }
