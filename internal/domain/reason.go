package domain

import "slices"

// Reason says why a record became a dead letter. The names are stored, shown by
// the admin API and filtered by: they never change meaning.
type Reason string

// Reasons of records that can never be processed: every one is invalid_<why>
// and is found by looking at the record alone, [ReasonUnstorable] excepted.
const (
	// ReasonTombstone: the value is null, as Kafka deletes a key.
	ReasonTombstone Reason = "invalid_tombstone"
	// ReasonEmpty: the value has no bytes, or white space only.
	ReasonEmpty Reason = "invalid_empty"
	// ReasonTooLarge: the value has more than [MaxValueBytes].
	ReasonTooLarge Reason = "invalid_too_large"
	// ReasonUTF8: the value is not UTF-8, anywhere.
	ReasonUTF8 Reason = "invalid_utf8"
	// ReasonJSON: the value is not JSON (RFC 8259), or nested too deeply to be read.
	ReasonJSON Reason = "invalid_json"
	// ReasonDuplicateKey: an object, at any depth, has two members of one name.
	ReasonDuplicateKey Reason = "invalid_duplicate_key"
	// ReasonTrailingData: something other than white space follows the JSON value.
	ReasonTrailingData Reason = "invalid_trailing_data"
	// ReasonNotObject: the value is JSON, but not an object.
	ReasonNotObject Reason = "invalid_not_object"
	// ReasonFieldCase: a known field is spelt with other letter case (EventID).
	ReasonFieldCase Reason = "invalid_field_case"
	// ReasonMissingField: a required field is absent.
	ReasonMissingField Reason = "invalid_missing_field"
	// ReasonWrongType: a field has a JSON type that it may not have; null is one.
	ReasonWrongType Reason = "invalid_wrong_type"
	// ReasonEventType: eventType is not [EventTypeOrderConfirmed].
	ReasonEventType Reason = "invalid_event_type"
	// ReasonEventID: the id is not a UUID in its 36-character form, or is the nil
	// or max UUID, or has no version of RFC 9562.
	ReasonEventID Reason = "invalid_event_id"
	// ReasonEventIDHeader: a header eventId is not a UUID in text, or several differ.
	ReasonEventIDHeader Reason = "invalid_event_id_header"
	// ReasonEventIDMismatch: the id in the body differs from that in the header.
	ReasonEventIDMismatch Reason = "invalid_event_id_mismatch"
	// ReasonEventIDNotV7: the id is no UUID version 7 though that is required.
	ReasonEventIDNotV7 Reason = "invalid_event_id_not_v7"
	// ReasonAggregateType: aggregateType is present and not "Order".
	ReasonAggregateType Reason = "invalid_aggregate_type"
	// ReasonOccurredAt: occurredAt is not RFC 3339, or outside the years 1 to 9999.
	ReasonOccurredAt Reason = "invalid_occurred_at"
	// ReasonOrderID: orderId is not a plain integer from 1 to 2^63-1.
	ReasonOrderID Reason = "invalid_order_id"
	// ReasonCustomerID: customerId is not a plain integer from 1 to 2^63-1.
	ReasonCustomerID Reason = "invalid_customer_id"
	// ReasonCurrency: currency is no ISO 4217 code of a currency with a minor unit.
	ReasonCurrency Reason = "invalid_currency"
	// ReasonAmount: totalAmount is not a decimal by JSON's grammar, or longer than
	// [MaxAmountBytes].
	ReasonAmount Reason = "invalid_amount"
	// ReasonAmountNotPositive: totalAmount is zero or below.
	ReasonAmountNotPositive Reason = "invalid_amount_not_positive"
	// ReasonAmountTooLarge: totalAmount is 10^15 or more.
	ReasonAmountTooLarge Reason = "invalid_amount_too_large"
	// ReasonAmountPrecision: totalAmount has more fraction digits than its currency.
	ReasonAmountPrecision Reason = "invalid_amount_precision"
	// ReasonUnstorable: the event is valid, but the database refuses its values.
	ReasonUnstorable Reason = "invalid_unstorable"
)

// Reasons of valid events that could not be brought to an end.
const (
	// ReasonConflictingPayload: the event id is known with another fingerprint.
	ReasonConflictingPayload Reason = "conflicting_payload"
	// ReasonOrderConflict: the order was charged with another amount or currency.
	ReasonOrderConflict Reason = "order_conflict"
	// ReasonOutsideDedupWindow: the event is older than deduplication remembers.
	ReasonOutsideDedupWindow Reason = "outside_dedup_window"
	// ReasonProviderRejected: the provider refuses the request as wrong.
	ReasonProviderRejected Reason = "provider_rejected"
	// ReasonIdempotencyConflict: the provider knows the key with another payload.
	ReasonIdempotencyConflict Reason = "idempotency_conflict"
	// ReasonRetriesExhausted: the retry horizon has passed without an answer.
	ReasonRetriesExhausted Reason = "retries_exhausted"
	// ReasonNeedsReconciliation: it may have been charged under a key that the
	// provider may have forgotten; only a human can tell.
	ReasonNeedsReconciliation Reason = "needs_reconciliation"
)

// Reasons returns every reason, in the order of its documentation.
func Reasons() []Reason {
	return []Reason{
		ReasonTombstone, ReasonEmpty, ReasonTooLarge, ReasonUTF8, ReasonJSON, ReasonDuplicateKey,
		ReasonTrailingData, ReasonNotObject, ReasonFieldCase, ReasonMissingField, ReasonWrongType,
		ReasonEventType, ReasonEventID, ReasonEventIDHeader, ReasonEventIDMismatch, ReasonEventIDNotV7,
		ReasonAggregateType, ReasonOccurredAt, ReasonOrderID, ReasonCustomerID, ReasonCurrency,
		ReasonAmount, ReasonAmountNotPositive, ReasonAmountTooLarge, ReasonAmountPrecision,
		ReasonUnstorable,
		ReasonConflictingPayload, ReasonOrderConflict, ReasonOutsideDedupWindow, ReasonProviderRejected,
		ReasonIdempotencyConflict, ReasonRetriesExhausted, ReasonNeedsReconciliation,
	}
}

// Valid reports whether the reason is one of [Reasons]; a filter of the admin
// API asks before it looks for rows that cannot exist.
func (r Reason) Valid() bool { return slices.Contains(Reasons(), r) }
