package domain

import (
	"context"

	"github.com/google/uuid"
)

// claim inserts the batch's events and tells the fresh ones from duplicates.
func (b *Biller) claim(ctx context.Context, tx Tx, batch *batch) error {
	if len(batch.leaders) == 0 {
		return nil
	}
	claimed, err := tx.Claim(ctx, b.policy.Group, batch.sightings())
	if err != nil {
		return err
	}
	var fresh []*item
	for _, it := range batch.leaders {
		if earlier, ok := claimed.Earlier[it.event.ID]; ok {
			it.fate = it.repeats(earlier)
			continue
		}
		it.claimed, it.first = true, it.sighting()
		fresh = append(fresh, it)
	}
	facts, err := tx.Look(ctx, subjects(fresh))
	if err != nil {
		return err
	}
	orders := make(map[int64]bool, len(fresh))
	for _, it := range fresh {
		it.classify(facts)
		if it.fate == fateCharged && orders[it.event.OrderID] {
			it.fate = fateSibling
		}
		if it.fate == fateCharged {
			orders[it.event.OrderID] = true
		}
	}
	return nil
}

// classify decides the fate of an event that this transaction claims, by what
// the book holds about it: a final charge or a claimed intent makes it a
// duplicate, whatever processed_event has forgotten.
func (it *item) classify(facts Facts) {
	charge, final := facts.Charges[it.event.ID]
	own := facts.Intents[it.event.ID]
	order, taken := facts.Orders[it.event.OrderID]
	holder, held := facts.Holders[it.event.OrderID]
	it.order = nil
	if taken {
		charge := order // of its own, so that only what is kept is allocated
		it.order = &charge
	}
	switch {
	case final:
		it.fate = it.repeats(Sighting{EventID: charge.EventID, Source: charge.Source, Fingerprint: charge.Fingerprint})
	case own != nil && (own.Claimed || own.Fingerprint != it.fingerprint):
		it.fate = it.repeats(Sighting{EventID: own.EventID, Source: own.Record.Coordinates, Fingerprint: own.Fingerprint})
	case own != nil:
		it.fate = fateAdopted
	case it.outside:
		it.fate = fateOutside
	case taken:
		it.fate = fateTaken
	case held && holder != it.event.ID:
		it.fate = fateSibling
	default:
		it.fate = fateCharged
	}
}

// unclaim takes back the claims of events that turned out to carry another
// meaning than the one that the book knows: they must not stand for it.
func (b *Biller) unclaim(ctx context.Context, tx Tx, batch *batch) error {
	var ids []uuid.UUID
	for _, it := range batch.leaders {
		if !it.claimed || it.fate != fateConflicting {
			continue
		}
		if len(batch.followers[it]) > 0 {
			return errSplit // one of them may be the true one, and fresh
		}
		ids = append(ids, it.event.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	return tx.Unclaim(ctx, b.policy.Group, ids)
}
