package domain

import (
	"context"

	"github.com/google/uuid"
)

// sendRound makes the dead intent due. It is retried for a whole horizon from
// now on; the age of its key counts from the first attempt, as ever.
func (o *Operator) sendRound(h *handling, s situation) {
	in := s.intent
	in.State = Waiting
	if in.MaybeSent {
		in.State = UnknownOutcome
	}
	in.DueAt, in.ReplayedAt = h.r.now, h.r.now
	h.r.save(in)
	h.now.State = LetterReplayed
	h.done.Result, h.done.Forward = ResultSentRound, o.forecast(h.r, s)
}

// forecast says what the worker will make of an intent that is sent round.
func (o *Operator) forecast(r *ruling, s situation) string {
	switch {
	case s.order != nil && !s.intent.MaybeSent && s.order.Status == ChargeCaptured && s.order.Amount == s.event.Total:
		return "ends as duplicate_order: the order is captured by event " + s.order.EventID.String()
	case s.order != nil && s.intent.MaybeSent:
		return "parks again: the order is claimed by event " + s.order.EventID.String() + " while this one may be charged"
	case s.order != nil:
		return "parks again as order_conflict: the order is claimed by event " + s.order.EventID.String()
	case r.policy.keyTooOld(s.intent, r.now) && o.finder == nil:
		return "parks again as needs_reconciliation: the provider may have forgotten the key"
	case r.policy.keyTooOld(s.intent, r.now):
		return "looked up at the provider first: its key is too old to be sent blindly"
	case s.intent.MaybeSent:
		return "sent again under the same key"
	}
	return "sent to the provider"
}

// handleInvalid decides about a record that held no valid event when it came.
// Its bytes are looked at again: what made it invalid may have been mended here.
func (o *Operator) handleInvalid(ctx context.Context, tx Tx, h *handling) error {
	if h.Outcome != "" && h.Outcome != OutcomeNotCharged {
		return &InputError{"outcome", "an invalid record was never sent"}
	}
	it, err := o.claimAgain(ctx, tx, h)
	if err != nil {
		return err
	}
	if it.invalid == nil {
		h.now.EventID, h.now.OrderID = it.event.ID, it.event.OrderID
	}
	switch {
	case it.fate == fateInvalid && h.Kind == ActionReplay:
		h.now.Reason, h.now.Detail = reasonOf(it.invalid)
		h.done.Result, h.done.Forward = ResultStillInvalid, string(h.now.Reason)+": "+h.now.Detail
	case it.fate == fateInvalid:
		h.close("the record holds no valid event")
	case it.fate == fateConflicting && h.Kind == ActionReplay:
		h.now.Reason = ReasonConflictingPayload
		h.now.Detail = "the event was first seen at " + it.first.Source.String() + " with another meaning"
		h.done.Result, h.done.Forward = ResultConflicting, h.now.Detail
	case !it.fate.fresh():
		h.close("the event was first seen at " + it.first.Source.String())
		if h.Kind == ActionReplay {
			h.done.Result = ResultDuplicate
		}
	case it.fate == fateAdopted && h.Kind == ActionDiscard:
		return &ConflictError{"another record of its event is under way; try again"}
	default:
		return o.recover(ctx, tx, h, it)
	}
	return nil
}

// claimAgain decodes the kept bytes and, where they hold a valid event, claims
// it in the name of the letter's group. The dedup window does not bind an operator.
func (o *Operator) claimAgain(ctx context.Context, tx Tx, h *handling) (*item, error) {
	batch := newBatch(o.decoder, []Record{h.letter.Record})
	claimer := &Biller{policy: *h.r.policy}
	if err := claimer.claim(ctx, tx, batch); err != nil {
		return nil, err
	}
	return batch.items[0], claimer.unclaim(ctx, tx, batch)
}

// recover goes on with a fresh event that an invalid record turned out to hold:
// for the worker, or to its end as discarded.
func (o *Operator) recover(ctx context.Context, tx Tx, h *handling, it *item) error {
	h.r.count(h.letter.Record.Coordinates, func(n *Counters) { n.Recovered++ })
	intents, err := tx.Lock(ctx, []uuid.UUID{it.event.ID})
	if err != nil {
		return err
	}
	in := intents[it.event.ID]
	if it.fate == fateAdopted {
		if in == nil || in.Claimed {
			return ErrMoved
		}
		in.ReplayedAt = h.r.now
		h.now.State, h.done.Result = LetterReplayed, ResultRecovered
		h.done.Forward = "goes on with what an earlier, lost transaction began"
		return h.r.adopted(it, in)
	}
	if in != nil {
		return ErrMoved // somebody has begun with the event meanwhile
	}
	fresh := newIntent(&it.event, it.record, h.r.policy.Group, h.r.now)
	fresh.Claimed = true
	if h.Kind == ActionDiscard {
		// Its row keeps out whoever would begin with the event right now, for another group: what was
		// opened before it is found, and what is opened after it finds the event final.
		if err := tx.Write(ctx, Writes{Insert: []Intent{fresh}}); err != nil {
			return err
		}
		fresh.read()
		h.r.finish(situation{event: &it.event, intent: &fresh, claims: true}, ChargeDiscarded, Answer{})
		h.now.State, h.done.Result = LetterDiscarded, ResultDiscarded
		h.done.Forward = "its event is never charged"
		return nil
	}
	fresh.ReplayedAt = h.r.now
	h.r.save(&fresh)
	h.now.State, h.done.Result = LetterReplayed, ResultRecovered
	h.done.Forward = "valid now: " + o.forecast(h.r, situation{event: &it.event, intent: &fresh, order: it.order})
	return nil
}
