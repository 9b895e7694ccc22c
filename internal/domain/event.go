package domain

import (
	"time"

	"github.com/google/uuid"
)

// EventTypeOrderConfirmed is the only event type this service consumes.
const EventTypeOrderConfirmed = "order.confirmed.v1"

// MaxValueBytes bounds the value of a record: a larger one is invalid.
const MaxValueBytes = 1 << 20

// Fingerprint is a digest of an event's meaning: two encodings of the same
// event have the same one, and an event with another meaning has another.
type Fingerprint [32]byte

// Event is a valid order.confirmed.v1.
type Event struct {
	ID         uuid.UUID
	OccurredAt time.Time // UTC
	OrderID    int64     // > 0
	CustomerID int64     // > 0
	Total      Money     // > 0

	// TraceParent and TraceState are the W3C trace context of the record's
	// headers, empty where there is none or it is malformed.
	TraceParent string
	TraceState  string
}

// IsV7 reports whether the id is a UUID version 7, which carries its time.
func (e *Event) IsV7() bool { return e.ID.Version() == 7 }

// Request returns the charge that the event asks for.
func (e *Event) Request() ChargeRequest {
	return ChargeRequest{
		EventID: e.ID, OrderID: e.OrderID, Amount: e.Total,
		TraceParent: e.TraceParent, TraceState: e.TraceState,
	}
}
