package domain

import (
	"time"

	"github.com/google/uuid"
)

// Names of the event's fields as they stand in the value.
const (
	fieldEventID       = "eventId"
	fieldEventType     = "eventType"
	fieldOccurredAt    = "occurredAt"
	fieldAggregateType = "aggregateType"
	fieldOrderID       = "orderId"
	fieldCustomerID    = "customerId"
	fieldTotalAmount   = "totalAmount"
	fieldCurrency      = "currency"
)

// headerEventID is the header that may carry the event id in the body's stead.
const headerEventID = "eventId"

const aggregateTypeOrder = "Order"

// Decoder turns records into events.
type Decoder struct {
	// RequireV7 makes event ids of any other version than 7 invalid.
	RequireV7 bool
}

// Decode returns the event that a record holds, or an [*InvalidError]: the same
// one for the same record, always. It keeps no reference to the record's bytes
// and its cost is linear in their number.
//
// The first fault found is the reason, in this order:
//
//  1. the value as bytes: [ReasonTombstone], [ReasonTooLarge], [ReasonUTF8], [ReasonEmpty];
//  2. the value as JSON, the first fault from its beginning: [ReasonJSON],
//     [ReasonDuplicateKey], then [ReasonNotObject], [ReasonTrailingData];
//  3. the names of its members: [ReasonFieldCase];
//  4. the fields, each for [ReasonMissingField], [ReasonWrongType] and its own
//     reason: eventType (so that another kind of event is called that),
//     eventId with its header, aggregateType, occurredAt, orderId, customerId,
//     currency, totalAmount.
//
// Fields of other names are skipped. null is a wrong type in every field: absent
// is absent, and a null more likely a mistake than a choice. Headers other than
// eventId never make a record invalid.
func (d Decoder) Decode(r *Record) (Event, error) {
	event, fault := d.decode(r)
	if fault != nil { // a nil *InvalidError must not become an error
		return Event{}, fault
	}
	return event, nil
}

// decode is Decode for callers that need the fault as what it is.
func (d Decoder) decode(r *Record) (Event, *InvalidError) {
	fields, err := scanValue(r.Value)
	if err != nil {
		return Event{}, err
	}
	if err := fields.constant(fieldEventType, ReasonEventType, EventTypeOrderConfirmed); err != nil {
		return Event{}, err
	}
	id, err := d.eventID(fields, r.Headers)
	if err != nil {
		return Event{}, err
	}
	event := Event{ID: id}
	if err := fields.fill(&event); err != nil {
		return Event{}, err
	}
	event.TraceParent, event.TraceState = r.TraceContext()
	return event, nil
}

// fill reads the fields behind the event id, in the documented order.
func (m *members) fill(event *Event) *InvalidError {
	var err *InvalidError
	if m.get(fieldAggregateType) != nil {
		if err := m.constant(fieldAggregateType, ReasonAggregateType, aggregateTypeOrder); err != nil {
			return err
		}
	}
	if event.OccurredAt, err = m.instant(fieldOccurredAt); err != nil {
		return err
	}
	if event.OrderID, err = m.positive(fieldOrderID, ReasonOrderID); err != nil {
		return err
	}
	if event.CustomerID, err = m.positive(fieldCustomerID, ReasonCustomerID); err != nil {
		return err
	}
	event.Total, err = m.money()
	return err
}

// instant reads an RFC 3339 time.
func (m *members) instant(field string) (time.Time, *InvalidError) {
	text, err := m.text(field)
	if err != nil {
		return time.Time{}, err
	}
	return parseInstant(text)
}

// money reads currency, then totalAmount: a number or a string of one.
func (m *members) money() (Money, *InvalidError) {
	code, err := m.text(fieldCurrency)
	if err != nil {
		return Money{}, err
	}
	cur, err := parseCurrency(string(code))
	if err != nil {
		return Money{}, err
	}
	raw := m.get(fieldTotalAmount)
	if raw.Kind() == '0' {
		return parseMoney(string(raw), cur)
	}
	amount, err := m.textOr(fieldTotalAmount, "not a number or a string")
	if err != nil {
		return Money{}, err
	}
	return parseMoney(string(amount), cur)
}

// eventID returns the id of body and headers together.
func (d Decoder) eventID(m *members, headers []Header) (uuid.UUID, *InvalidError) {
	body, inBody, err := m.bodyID()
	if err != nil {
		return uuid.Nil, err
	}
	header, inHeader, err := headerID(headers)
	if err != nil {
		return uuid.Nil, err
	}
	id := body
	switch {
	case !inBody && !inHeader:
		return uuid.Nil, invalid(ReasonMissingField, fieldEventID, "absent, and no header of that name")
	case inBody && inHeader && body != header:
		return uuid.Nil, invalid(ReasonEventIDMismatch, fieldEventID, "body and header differ")
	case !inBody:
		id = header
	}
	if id.Variant() != uuid.RFC4122 || id.Version() < 1 || id.Version() > 8 {
		return uuid.Nil, invalid(ReasonEventID, fieldEventID, "nil, max or without a version of RFC 9562")
	}
	if d.RequireV7 && id.Version() != 7 {
		return uuid.Nil, invalid(ReasonEventIDNotV7, fieldEventID, "UUID version %d where 7 is required", id.Version())
	}
	return id, nil
}
