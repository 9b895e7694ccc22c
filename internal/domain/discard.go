package domain

import "context"

// giveUp makes the event of a dead intent final, as the operator found it at the
// provider. The intent goes with it.
func (h *handling) giveUp(ctx context.Context, tx Tx, s situation) error {
	outcome := h.Outcome
	switch {
	case outcome != "":
	case s.intent.MaybeSent:
		return &InputError{"outcome", "is required: the charge may have been sent; ask the provider, and give not_charged, charged or unknown"}
	default:
		outcome = OutcomeNotCharged
	}
	h.Outcome = outcome
	switch {
	case s.charge != nil:
		return &ConflictError{"the event is final already: " + string(s.charge.Status)}
	case outcome == OutcomeCharged && s.order != nil:
		return &ConflictError{"the order is claimed by event " + s.order.EventID.String() +
			": give the money of this one back, then discard it as not_charged"}
	case outcome != OutcomeNotCharged && s.order == nil && !s.intent.State.ClaimsOrder():
		if err := h.claimOrder(ctx, tx, &s); err != nil {
			return err
		}
	}
	h.now.State = LetterDiscarded
	if outcome == OutcomeCharged {
		h.r.finish(s, ChargeCaptured, Answer{Kind: Captured, ProviderChargeID: h.ProviderChargeID})
		h.done.Result, h.done.Forward = ResultCaptured, "written down as captured outside; later events of the order are not charged"
		return nil
	}
	h.r.finish(s, ChargeDiscarded, Answer{})
	h.done.Result, h.done.Forward = ResultDiscarded, "the order is free for a later event"
	if outcome == OutcomeUnknown && s.order == nil {
		h.r.writes.Charges[len(h.r.writes.Charges)-1].ClaimsOrder = true
	}
	if outcome == OutcomeUnknown || s.order != nil {
		h.done.Forward = "the order stays claimed: later events of it are not charged"
	}
	return nil
}

// claimOrder makes a held intent claim its order before a charge does, as every
// intent must, and looks again: an event of the order that is being charged
// right now keeps the operator out, and the other way round.
func (h *handling) claimOrder(ctx context.Context, tx Tx, s *situation) error {
	in := s.intent
	in.State, in.MaybeSent = Parked, true
	if in.FirstAttemptAt.IsZero() {
		in.FirstAttemptAt = h.r.now
	}
	if err := tx.Write(ctx, Writes{Update: []Intent{*in}}); err != nil {
		return err
	}
	in.read()
	facts, err := tx.Final(ctx, []Subject{{EventID: in.EventID, OrderID: in.OrderID}})
	if err != nil {
		return err
	}
	if s.finals(facts); s.charge != nil || s.order != nil {
		return ErrMoved
	}
	return nil
}
