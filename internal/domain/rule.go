package domain

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// situate gathers what the book says about an event, with its intent locked.
func situate(ctx context.Context, tx Tx, e *Event) (situation, error) {
	intents, err := tx.Lock(ctx, []uuid.UUID{e.ID})
	if err != nil {
		return situation{}, err
	}
	facts, err := tx.Look(ctx, []Subject{{EventID: e.ID, OrderID: e.OrderID}})
	if err != nil {
		return situation{}, err
	}
	s := situation{event: e, intent: intents[e.ID]}
	s.claims = s.intent != nil && s.intent.Claimed
	s.finals(facts)
	return s, nil
}

// finals fills in the charges that are final for the event and its order.
func (s *situation) finals(facts Facts) {
	if charge, ok := facts.Charges[s.event.ID]; ok {
		s.charge = &charge
	}
	if order, ok := facts.Orders[s.event.OrderID]; ok && order.EventID != s.event.ID {
		s.order = &order
	}
}

// rule decides what a batch writes about one record. Intent is that of the
// record's event, locked, where the batch has to do with one.
func (r *ruling) rule(it *item, in *Intent) error {
	if it.fate != fateInvalid {
		r.received(it, in)
	}
	switch it.fate {
	case fateInvalid:
		r.invalid(it.record, it.invalid)
	case fateConflicting:
		r.conflicting(it)
		r.dropOpened(it, in)
	case fateRedelivered, fateRepublished:
		r.dropOpened(it, in)
	case fateSibling:
		sibling := newIntent(&it.event, it.record, r.policy.Group, r.now)
		sibling.Claimed = true
		r.postpone(&sibling)
	case fateOutside:
		r.outdated(it)
	case fateTaken:
		return r.takenItem(it, in)
	case fateAdopted:
		return r.adopted(it, in)
	case fateCharged:
		return r.charged(it, in)
	}
	return nil
}

// received counts a record of a valid event by its fate.
func (r *ruling) received(it *item, in *Intent) {
	f := it.fate
	if f.fresh() && in != nil && in.Claimed {
		// Another group claimed the event while this transaction was open.
		f = it.repeats(Sighting{EventID: in.EventID, Source: in.Record.Coordinates, Fingerprint: in.Fingerprint})
	}
	r.count(it.record.Coordinates, func(n *Counters) {
		n.Received++
		if !f.fresh() {
			r.duplicate(it, f, n)
			return
		}
		n.Processed++
		if !it.event.IsV7() {
			n.NonV7++
		}
		if it.ahead > idTolerance {
			n.IDAhead++
			n.IDAheadMax = max(n.IDAheadMax, it.ahead.Truncate(time.Millisecond))
		}
	})
}

// invalid parks a record that holds no valid event.
func (r *ruling) invalid(record *Record, why error) {
	r.count(record.Coordinates, func(n *Counters) { n.Received++; n.Invalid++ })
	reason, detail := reasonOf(why)
	r.letters = append(r.letters, Letter{
		Record: *record, Reason: reason, Detail: detail, State: LetterOpen, Group: r.policy.Group, At: r.now,
	})
}

// conflicting parks a record that gives a known event id another meaning.
func (r *ruling) conflicting(it *item) {
	r.letters = append(r.letters, Letter{
		Record: *it.record, Reason: ReasonConflictingPayload, State: LetterOpen,
		Detail:  "the event was first seen at " + it.first.Source.String() + " with another meaning",
		EventID: it.event.ID, OrderID: it.event.OrderID, Group: r.policy.Group, At: r.now,
	})
}

// dropOpened ends the intent that the batch opened for an event that turned out
// to be final. Nothing was sent under it.
func (r *ruling) dropOpened(it *item, in *Intent) {
	if it.opened != nil && in.ownedBy(it.opened.Token) {
		r.drop(in)
	}
}

// takenItem decides about a fresh event whose order a charge claims.
func (r *ruling) takenItem(it *item, in *Intent) error {
	switch {
	case it.opened == nil:
		fresh := newIntent(&it.event, it.record, r.policy.Group, r.now)
		in = &fresh
	case !in.ownedBy(it.opened.Token):
		return ErrMoved
	default:
		in.spend(r.policy, it.answer)
	}
	in.Claimed = true
	r.taken(situation{event: &it.event, intent: in, order: it.order, claims: true})
	return nil
}

// adopted claims an event for the intent that an earlier, lost transaction left
// behind. A stored answer is finished; anything else is the worker's.
func (r *ruling) adopted(it *item, in *Intent) error {
	if in == nil {
		return ErrMoved
	}
	if !in.Claimed {
		in.Group = r.policy.Group // whose counters it is finished in
	}
	in.Claimed = true
	if in.State == Answered {
		r.settle(situation{event: &it.event, intent: in, order: it.order, claims: true}, in.Token, *in.Answer)
		return nil
	}
	r.save(in)
	return nil
}

// charged records the answer to an event that this batch sent, or withheld.
func (r *ruling) charged(it *item, in *Intent) error {
	if in == nil {
		return ErrMoved
	}
	in.Claimed = true
	if it.left {
		r.save(in) // its call goes on, under its lease
		return nil
	}
	r.settle(situation{event: &it.event, intent: in, claims: true}, it.opened.Token, it.answer)
	return nil
}

// reasonOf returns the reason and detail of a decoding error.
func reasonOf(err error) (Reason, string) {
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return ReasonUnstorable, "unreadable"
	}
	if invalid.Field == "" {
		return invalid.Reason, invalid.Detail
	}
	return invalid.Reason, invalid.Field + ": " + invalid.Detail
}
