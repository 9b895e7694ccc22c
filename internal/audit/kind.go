package audit

import "example.com/billing/internal/domain"

// Kind is the terminal record that an offset was found to have.
type Kind string

// The kinds, of which every record has exactly one.
const (
	Captured       Kind = "captured"
	Declined       Kind = "declined"
	Duplicate      Kind = "duplicate" // of an event first seen at other coordinates
	DuplicateOrder Kind = "duplicate_order"
	Unfinished     Kind = "unfinished" // a claimed intent that time will finish
	Parked         Kind = "parked"     // a dead letter that waits for an operator
	Discarded      Kind = "discarded"  // an operator ended it
	NotYetReached  Kind = "not_yet_reached"
	Unexplained    Kind = "unexplained" // none; there is a finding for each
)

// Kinds lists every kind in the order of a report.
func Kinds() []Kind {
	return []Kind{Captured, Declined, Duplicate, DuplicateOrder, Unfinished, Parked, Discarded, NotYetReached, Unexplained}
}

// kindOf translates a final status.
func kindOf(status domain.ChargeStatus) Kind {
	switch status {
	case domain.ChargeCaptured:
		return Captured
	case domain.ChargeDeclined:
		return Declined
	case domain.ChargeDuplicateOrder:
		return DuplicateOrder
	case domain.ChargeDiscarded:
		return Discarded
	}
	return Unexplained
}

// Problem is what is wrong, by a name that scripts may rely on.
type Problem string

// The problems. The first group contradicts the tables, the second the provider.
const (
	Missing        Problem = "missing"         // a record without any terminal record
	Contradiction  Problem = "contradiction"   // more than one, which exclude each other
	WrongAmount    Problem = "wrong_amount"    // charge: another amount or currency than the record
	WrongCharge    Problem = "wrong_charge"    // charge: another order, customer or meaning than the record
	Forgotten      Problem = "forgotten"       // processed_event lacks an event that it must still remember
	MissingLetter  Problem = "missing_letter"  // a parked intent without its dead letter
	MissingIntent  Problem = "missing_intent"  // an open dead letter without its intent
	UncoveredOrder Problem = "uncovered_order" // duplicate_order, but no charge claims the order
	DoubleCapture  Problem = "double_capture"  // two captured charges of one order
	OrphanCharge   Problem = "orphan_charge"   // a charge whose record is not in the topic
	OrphanIntent   Problem = "orphan_intent"   // an intent likewise, or one that nobody claimed in time
	OrphanEvent    Problem = "orphan_event"    // a row of processed_event likewise
	WrongCounters  Problem = "wrong_counters"  // the statistics do not add up

	ProviderMissing     Problem = "provider_missing"      // captured here, unknown to the provider
	ProviderDouble      Problem = "provider_double"       // captured there more than once, as far as it tells
	ProviderWrongAmount Problem = "provider_wrong_amount" // another amount, currency or order there
	ProviderWrongStatus Problem = "provider_wrong_status" // captured here, declined there
	UnrecordedCapture   Problem = "unrecorded_capture"    // captured there, and not here
	ProviderSilent      Problem = "provider_silent"       // it did not answer, twice
)

// Problems lists every problem in the order of a report.
func Problems() []Problem {
	return []Problem{
		Missing, Contradiction, WrongAmount, WrongCharge, Forgotten, MissingLetter, MissingIntent, UncoveredOrder,
		DoubleCapture, OrphanCharge, OrphanIntent, OrphanEvent, WrongCounters,
		ProviderMissing, ProviderDouble, ProviderWrongAmount, ProviderWrongStatus, UnrecordedCapture, ProviderSilent,
	}
}

// Advice says what to do about a problem.
func (p Problem) Advice() string {
	switch p {
	case Missing:
		return "ask the provider about the event id; if it was not charged, publish the event again with the same id"
	case Contradiction:
		return "read /api/v1/events/{eventId} and the provider's view; close what is not true"
	case WrongAmount, WrongCharge:
		return "the row was changed after it was written, or made from another record; compare with the provider, refund or correct"
	case Forgotten:
		return "find out who removed rows of processed_event; the charge itself still keeps the event from being charged again"
	case MissingLetter:
		return "the event waits and nobody is told: see the intent's last_error, reconcile with the provider"
	case MissingIntent:
		return "the letter cannot be replayed; ask the provider, then discard it with the outcome"
	case UncoveredOrder:
		return "the order may be unpaid: find the charge that captured it, else charge it by a new event"
	case DoubleCapture:
		return "refund one of them; the unique index charge_claims_order is missing or was bypassed"
	case OrphanCharge:
		return "money was taken for a record that is not in the topic: an aborted or foreign record, or another topic of this name; check the order, refund"
	case OrphanIntent:
		return "nobody will finish it: ask the provider by the event id, publish the event again or remove the row"
	case OrphanEvent:
		return "harmless for money, but the event would be passed over if it came: compare the topic with its backup"
	case WrongCounters:
		return "rows were added or removed by hand, or a counter was; the other findings say which"
	case ProviderMissing:
		return "the order was not paid although we say so: ask the provider with our charge id, charge again by a new event"
	case ProviderDouble:
		return "the customer paid twice: refund one of the captures"
	case ProviderWrongAmount:
		return "compare with the order, refund or collect the difference"
	case ProviderWrongStatus:
		return "the order was not paid although we say so: ask the provider"
	case UnrecordedCapture:
		return "the customer paid and we do not know it: replay or discard the dead letter as charged; else refund"
	case ProviderSilent:
		return "run the audit again when the provider answers"
	}
	return ""
}
