package domain

import "context"

// send calls the provider for a leased intent. One whose key the provider may have
// forgotten is never sent blindly: it is looked up first, under the same lease and
// with no transaction open.
//
// What the look-up does not know may be sent, with the same key. That nothing was
// carried out under the key, and nothing is under way, is what the provider
// promises with it; so the old requests can do no harm any more, forgotten key or
// not. A request that it has overlooked can only be a recent one of ours, whose key
// it remembers still: the next one meets it, as every retry does.
func (w *Worker) send(stop, ctx context.Context, j *job) Answer {
	if j.forgotten {
		if answer, known := w.lookUp(stop, ctx, j); known {
			return answer
		}
	}
	return w.call(stop, ctx, j.pass, &j.event, &j.intent)
}

// lookUp asks for the charge under the intent's key. Known is false where the
// provider says that there is none.
func (w *Worker) lookUp(stop, ctx context.Context, j *job) (answer Answer, known bool) {
	switch {
	case stop.Err() != nil:
		return Answer{Kind: Withheld, Detail: "stopping"}, true
	case !w.caller.gate.allows(j.pass):
		return Answer{Kind: Withheld, Detail: "intake is paused"}, true
	}
	ctx, cancel := context.WithTimeout(ctx, w.policy.budget(&j.intent, w.clock.Now()))
	defer cancel()
	found, err := w.policy.Finder.Find(ctx, j.event.ID)
	switch {
	case err != nil:
		// Nobody knows, as before. Told as any other unknown answer, so that the retry horizon ends it.
		return Answer{Kind: Unknown, MaybeSent: true, Probe: j.pass.probe, Detail: bounded(err.Error())}, true
	case !found.Known:
		return Answer{}, false
	case found.OrderID != j.event.OrderID || found.Amount != j.event.Total:
		return Answer{
			Kind: KeyConflict, MaybeSent: true, Found: true,
			Detail: "the provider knows the key with another order or amount",
		}, true
	case found.Status == ChargeDeclined:
		return Answer{Kind: Declined, Found: true, ProviderChargeID: found.ProviderChargeID, DeclineCode: found.DeclineCode, Detail: "looked up"}, true
	default:
		return Answer{Kind: Captured, Found: true, ProviderChargeID: found.ProviderChargeID, Detail: "looked up"}, true
	}
}

// maxDetailBytes bounds the detail of an answer.
const maxDetailBytes = 200

func bounded(detail string) string { return detail[:min(len(detail), maxDetailBytes)] }
