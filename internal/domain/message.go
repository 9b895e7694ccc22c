package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// MessageKind says what a message is, and so to which topic it goes.
type MessageKind string

// The kinds of messages.
const (
	EventMessage  MessageKind = "event"       // an outcome that became final
	LetterMessage MessageKind = "dead_letter" // a dead letter that is new or open again
)

// Types of the outcome events.
const (
	EventTypeChargeCaptured = "billing.charge-captured.v1"
	EventTypeChargeDeclined = "billing.charge-declined.v1"
)

// Message is something to be told to the world, once the transaction that makes it
// true has committed. It may be told more than once.
type Message struct {
	Kind    MessageKind
	Key     []byte // the order id in digits; a dead letter has the key of its record
	Value   []byte // nil for the dead letter of a tombstone
	Headers []Header
}

// chargeEvent is the form of the outcome events: api/events/charge-*.v1.schema.json.
type chargeEvent struct {
	EventID          uuid.UUID   `json:"eventId"`
	EventType        string      `json:"eventType"`
	OccurredAt       string      `json:"occurredAt"`
	AggregateType    string      `json:"aggregateType"`
	OrderID          int64       `json:"orderId"`
	CustomerID       int64       `json:"customerId"`
	Amount           json.Number `json:"amount"`
	Currency         string      `json:"currency"`
	OrderEventID     uuid.UUID   `json:"orderEventId"`
	ProviderChargeID string      `json:"providerChargeId,omitempty"`
	DeclineCode      string      `json:"declineCode,omitempty"`
}

// eventTypeOf returns the type of the outcome event of a final result, or "" where
// there is none: no charge was asked for.
func eventTypeOf(status ChargeStatus) string {
	switch status {
	case ChargeCaptured:
		return EventTypeChargeCaptured
	case ChargeDeclined:
		return EventTypeChargeDeclined
	case ChargeDuplicateOrder, ChargeDiscarded:
	}
	return ""
}

// OutcomeEventID returns the id of the outcome event of a charge: the UUIDv5 of the
// event type in the name space of the order event's id. It is the same however often,
// and by whom, the outcome is published.
func OutcomeEventID(eventType string, event uuid.UUID) uuid.UUID {
	return uuid.NewSHA1(event, []byte(eventType))
}

// outcome is a charge that became final, and the trace of its event.
type outcome struct {
	charge                  Charge
	traceParent, traceState string
}

// message returns the event that tells of a captured or declined charge.
func (o *outcome) message() (Message, error) {
	c, eventType := &o.charge, eventTypeOf(o.charge.Status)
	value, err := json.Marshal(chargeEvent{
		EventID: OutcomeEventID(eventType, c.EventID), EventType: eventType,
		// The database keeps microseconds: both tell the same instant.
		OccurredAt:    c.SettledAt.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano),
		AggregateType: "Order", OrderID: c.OrderID, CustomerID: c.CustomerID,
		Amount: json.Number(c.Amount.Decimal()), Currency: c.Amount.Currency().Code(), OrderEventID: c.EventID,
		ProviderChargeID: c.ProviderChargeID, DeclineCode: c.DeclineCode,
	})
	if err != nil {
		return Message{}, fmt.Errorf("encode %s of %s: %w", eventType, c.EventID, err)
	}
	m := Message{Kind: EventMessage, Key: strconv.AppendInt(nil, c.OrderID, 10), Value: value}
	if o.traceParent != "" {
		m.Headers = append(m.Headers, Header{Key: headerTraceParent, Value: []byte(o.traceParent)})
	}
	if o.traceState != "" {
		m.Headers = append(m.Headers, Header{Key: headerTraceState, Value: []byte(o.traceState)})
	}
	return m, nil
}

// Headers that a published dead letter has in addition to those of its record. They
// stand behind them: where a record that was a dead letter before brings some of its
// own, the last of each name counts.
const (
	LetterHeaderPrefix    = "billing-dlq-"
	LetterHeaderTopic     = LetterHeaderPrefix + "topic"
	LetterHeaderPartition = LetterHeaderPrefix + "partition"
	LetterHeaderOffset    = LetterHeaderPrefix + "offset"
	LetterHeaderTimestamp = LetterHeaderPrefix + "timestamp" // of the record, RFC 3339; absent where it has none
	LetterHeaderGroup     = LetterHeaderPrefix + "group"     // the consumer group that parked it
	LetterHeaderReason    = LetterHeaderPrefix + "reason"    // one of [Reasons]
	LetterHeaderDetail    = LetterHeaderPrefix + "detail"    // at most 200 bytes
	LetterHeaderEventID   = LetterHeaderPrefix + "event-id"  // absent for a record that holds no valid event
	LetterHeaderParkedAt  = LetterHeaderPrefix + "parked-at" // RFC 3339
)

// letterMessage returns the record of a dead letter as it came, and why it is one.
func letterMessage(l *Letter) Message {
	m := Message{Kind: LetterMessage, Key: l.Record.Key, Value: l.Record.Value, Headers: slices.Clone(l.Record.Headers)}
	add := func(key, value string) {
		m.Headers = append(m.Headers, Header{Key: key, Value: []byte(value)})
	}
	add(LetterHeaderTopic, l.Record.Topic)
	add(LetterHeaderPartition, strconv.Itoa(int(l.Record.Partition)))
	add(LetterHeaderOffset, strconv.FormatInt(l.Record.Offset, 10))
	if !l.Record.Timestamp.IsZero() {
		add(LetterHeaderTimestamp, l.Record.Timestamp.UTC().Format(time.RFC3339Nano))
	}
	add(LetterHeaderGroup, l.Group)
	add(LetterHeaderReason, string(l.Reason))
	add(LetterHeaderDetail, l.Detail)
	if l.EventID != uuid.Nil {
		add(LetterHeaderEventID, l.EventID.String())
	}
	add(LetterHeaderParkedAt, l.At.UTC().Format(time.RFC3339Nano))
	return m
}
