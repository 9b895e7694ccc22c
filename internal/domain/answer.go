package domain

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// AnswerKind is what a provider's answer means for the money. The provider
// client translates HTTP into it once, in one table.
type AnswerKind uint8

// The kinds of answer. Only Captured, Declined, Rejected and KeyConflict are
// definite: the provider has decided and the same key will not change it.
const (
	// Unknown: the request may have been carried out. The zero value, on purpose.
	Unknown AnswerKind = iota
	// Captured: the money was taken. Final.
	Captured
	// Declined: a business outcome. Final, never retried.
	Declined
	// Rejected: the provider refuses this request as wrong. Dead letter provider_rejected.
	Rejected
	// KeyConflict: the key is known with another payload. Dead letter idempotency_conflict.
	KeyConflict
	// NotSent: the request surely never reached the provider. Retry later.
	NotSent
	// Withheld: we chose not to send (gate closed, lease too short, shutdown). Not an attempt.
	Withheld
	// Misconfigured: the provider refuses us, not this charge. Intake pauses. Not an attempt.
	Misconfigured
)

// String returns the kind's name in snake case.
func (k AnswerKind) String() string {
	switch k {
	case Unknown:
		return "unknown"
	case Captured:
		return "captured"
	case Declined:
		return "declined"
	case Rejected:
		return "rejected"
	case KeyConflict:
		return "key_conflict"
	case NotSent:
		return "not_sent"
	case Withheld:
		return "withheld"
	case Misconfigured:
		return "misconfigured"
	}
	return fmt.Sprintf("answer kind %d", uint8(k))
}

// ParseAnswerKind is the inverse of String.
func ParseAnswerKind(name string) (AnswerKind, error) {
	for k := Unknown; k <= Misconfigured; k++ {
		if k.String() == name {
			return k, nil
		}
	}
	return Unknown, fmt.Errorf("no answer kind %q", name)
}

// Definite reports whether the provider has decided: the answer can be stored
// and acted on later without another call.
func (k AnswerKind) Definite() bool {
	return k == Captured || k == Declined || k == Rejected || k == KeyConflict
}

// Answer is the outcome of one charge: the last answer of its quick attempts,
// and what all of them together say about whether anything was sent.
type Answer struct {
	Kind AnswerKind
	// Status is the HTTP status of the last answer; 0 when none came.
	Status int
	// ProviderChargeID is the provider's id of the charge when it is a sane
	// string: at most 255 printable characters. Empty otherwise.
	ProviderChargeID string
	// DeclineCode is the provider's reason of a decline, bounded likewise.
	DeclineCode string
	// RetryAfter is how long the provider asks us to wait; 0 when it does not.
	RetryAfter time.Duration
	// Posts is how many requests may have left this process.
	Posts int
	// Found is set when the answer was learnt by looking the charge up.
	Found bool
	// Probe is set when the request was sent to try the provider out while intake
	// was paused: without a definite answer it brings no charge nearer to its end.
	Probe bool
	// MaybeSent is set when any of the attempts was left without a definite
	// answer, and by KeyConflict. It is never cleared by a later attempt.
	MaybeSent bool
	// Detail says why in a few words for logs and dead letters, at most 200
	// bytes of valid UTF-8 and free of payload and secrets.
	Detail string
}

// ChargeRequest is everything that a charge is made of: a pure function of the
// event, so that every attempt at it sends the same bytes.
type ChargeRequest struct {
	EventID uuid.UUID // the idempotency key
	OrderID int64
	Amount  Money
	// Once asks for a single attempt, without quick ones after it; not part of the payload.
	Once bool
	// TraceParent and TraceState continue the producer's trace; not part of the payload.
	TraceParent string
	TraceState  string
}

// Provider takes the money.
type Provider interface {
	// Charge posts the request, with a few quick attempts while ctx's deadline
	// leaves room for a whole one, and always returns an answer: there is no
	// error beside it. It sends nothing once ctx is done.
	Charge(ctx context.Context, request ChargeRequest) Answer
}
