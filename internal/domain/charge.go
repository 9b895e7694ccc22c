package domain

import (
	"time"

	"github.com/google/uuid"
)

// ChargeStatus is how an event's charge ended.
type ChargeStatus string

// The final results. A charge is written once and never changed.
const (
	ChargeCaptured       ChargeStatus = "captured"
	ChargeDeclined       ChargeStatus = "declined"
	ChargeDuplicateOrder ChargeStatus = "duplicate_order" // another event of the order was captured
	ChargeDiscarded      ChargeStatus = "discarded"       // an operator ended it
)

// ChargeStatuses lists every final result.
func ChargeStatuses() []ChargeStatus {
	return []ChargeStatus{ChargeCaptured, ChargeDeclined, ChargeDuplicateOrder, ChargeDiscarded}
}

// Charge is the final result of one event: the business record.
type Charge struct {
	EventID          uuid.UUID
	OrderID          int64
	CustomerID       int64
	Amount           Money
	Status           ChargeStatus
	ProviderChargeID string
	DeclineCode      string
	Attempts         int // an upper bound on the requests sent
	// ClaimsOrder keeps every later event of the order from being charged:
	// captured, or discarded with an unknown outcome.
	ClaimsOrder bool
	OccurredAt  time.Time
	SettledAt   time.Time
	Fingerprint Fingerprint
	Source      Coordinates // the record that was charged
	// IntendedAt is when its intent was made, and FirstAttemptAt when something may
	// first have been sent; zero where there was no intent or nothing was sent, and in
	// charges that were written before they were kept.
	IntendedAt     time.Time
	FirstAttemptAt time.Time
}

// settled returns the final charge of an event whose intent was in.
func settled(e *Event, in *Intent, status ChargeStatus, answer Answer, now time.Time) Charge {
	c := Charge{
		EventID: e.ID, OrderID: e.OrderID, CustomerID: e.CustomerID, Amount: e.Total,
		Status: status, ClaimsOrder: status == ChargeCaptured,
		ProviderChargeID: answer.ProviderChargeID, DeclineCode: answer.DeclineCode,
		Attempts: in.Attempts, OccurredAt: e.OccurredAt, SettledAt: now,
		Fingerprint: in.Fingerprint, Source: in.Record.Coordinates, FirstAttemptAt: in.FirstAttemptAt,
	}
	if in.Stored() {
		c.IntendedAt = in.CreatedAt
	}
	return c
}
