package audit

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// ProviderReport says how much the provider was asked.
type ProviderReport struct {
	Asked    bool  // false: there is no lookup, or it was not wanted
	Lookups  int64 // questions that were answered
	Captured int64 // answers that said captured
}

// question is what we hold of an event when the provider is asked about it.
type question struct {
	at       domain.Coordinates
	event    uuid.UUID
	order    int64
	amount   domain.Money        // zero for an intent
	status   domain.ChargeStatus // empty for an intent
	state    domain.IntentState  // empty for a charge
	id       string              // the provider's, as we recorded it
	inFlight bool                // somebody may be asking for the charge right now
	rival    uuid.UUID           // another event whose charge captured the order; uuid.Nil: none
}

func questionOf(c *domain.Charge, holders map[int64]domain.Charge) question {
	q := question{
		at: c.Source, event: c.EventID, order: c.OrderID, amount: c.Amount, status: c.Status, id: c.ProviderChargeID,
	}
	if h, ok := holders[c.OrderID]; ok && h.EventID != c.EventID && h.Status == domain.ChargeCaptured {
		q.rival = h.EventID
	}
	return q
}

func (a *Auditor) questionAbout(in *domain.Intent) question {
	return question{
		at: in.Record.Coordinates, event: in.EventID, order: in.OrderID, state: in.State,
		inFlight: in.State == domain.Answered || in.LeaseUntil.After(a.clock.Now()),
	}
}

// ask puts questions to the provider; what looks wrong is kept for a second look.
func (a *Auditor) ask(ctx context.Context, step string, questions []question) error {
	if a.finder == nil || len(questions) == 0 {
		return nil
	}
	for i, answer := range a.find(ctx, questions) {
		a.options.Progress(step+" at the provider", a.asked.Lookups, -1)
		if answer.err != nil || len(questions[i].judge(answer.found)) > 0 {
			a.open = append(a.open, questions[i])
		}
	}
	if len(a.open) >= maxSuspects {
		return a.settleQuestions(ctx)
	}
	return ctx.Err()
}

// answer is what the provider said.
type answer struct {
	found domain.Found
	err   error
}

// find asks a few questions at a time, and returns the answers in their order.
func (a *Auditor) find(ctx context.Context, questions []question) []answer {
	answers := make([]answer, len(questions))
	next := make(chan int)
	var asking sync.WaitGroup
	for range min(lookups, len(questions)) {
		asking.Go(func() {
			for i := range next {
				answers[i].found, answers[i].err = a.finder.Find(ctx, questions[i].event)
			}
		})
	}
	for i := range questions {
		next <- i
	}
	close(next)
	asking.Wait()
	for i := range answers {
		if answers[i].err == nil {
			a.asked.Lookups++
		}
		if answers[i].err == nil && answers[i].found.Known && answers[i].found.Status == domain.ChargeCaptured {
			a.asked.Captured++
		}
	}
	return answers
}

// settleQuestions asks once more about what looked wrong, with what we hold by then.
func (a *Auditor) settleQuestions(ctx context.Context) error {
	if len(a.open) == 0 {
		return nil
	}
	if err := a.pause(ctx); err != nil {
		return err
	}
	ids, orders := make([]uuid.UUID, len(a.open)), make([]int64, len(a.open))
	for i := range a.open {
		ids[i], orders[i] = a.open[i].event, a.open[i].order
	}
	evidence, err := a.books.Evidence(ctx, a.options.Group, ids, nil)
	if err != nil {
		return err
	}
	_, holders, err := a.books.CapturesOf(ctx, orders)
	if err != nil {
		return err
	}
	again := a.open[:0]
	for _, q := range a.open {
		if c, ok := evidence.Charges[q.event]; ok {
			again = append(again, questionOf(&c, holders))
		} else if in := evidence.Intents[q.event]; in != nil {
			again = append(again, a.questionAbout(in))
		}
	}
	for i, answer := range a.find(ctx, again) {
		switch {
		case answer.err == nil:
			a.found.add(again[i].judge(answer.found)...)
		case !again[i].inFlight: // what is under way there may be no answer yet
			a.found.add(again[i].about(ProviderSilent, "it did not say: %v", answer.err))
		}
	}
	a.open = a.open[:0]
	return ctx.Err()
}

func (q *question) about(p Problem, format string, args ...any) Finding {
	return Finding{Problem: p, At: q.at, EventID: q.event, OrderID: q.order, What: fmt.Sprintf(format, args...)}
}

// judge holds what we recorded against what the provider says.
func (q *question) judge(f domain.Found) (found []Finding) {
	there := f.Known && f.Status == domain.ChargeCaptured
	if q.status != domain.ChargeCaptured {
		if !there || q.inFlight {
			return nil
		}
		if q.rival != uuid.Nil {
			return []Finding{q.about(ProviderDouble, "the provider captured it (%s) beside event %s of the same order", f.Amount, q.rival)}
		}
		return []Finding{q.about(UnrecordedCapture, "the provider captured %s (%s), here it is %s", f.Amount, f.ProviderChargeID, q.here())}
	}
	switch {
	case !f.Known:
		return []Finding{q.about(ProviderMissing, "captured %s here, unknown to the provider", q.amount)}
	case !there:
		return []Finding{q.about(ProviderWrongStatus, "captured here, %s at the provider", f.Status)}
	}
	if !sameMoney(f.Amount, q.amount) || f.OrderID != q.order {
		found = append(found, q.about(ProviderWrongAmount, "here %s of order %d, at the provider %s of order %d", q.amount, q.order, f.Amount, f.OrderID))
	}
	if q.id != "" && f.ProviderChargeID != "" && q.id != f.ProviderChargeID {
		found = append(found, q.about(ProviderDouble, "we recorded %s, the provider shows %s under the same key", q.id, f.ProviderChargeID))
	}
	return found
}

// here is how the event stands with us.
func (q *question) here() string {
	if q.status != "" {
		return string(q.status)
	}
	return "unfinished: " + string(q.state)
}

// askAboutMissing adds what the provider knows of an event that we know nothing of.
func (a *Auditor) askAboutMissing(ctx context.Context, v *verdict) {
	if a.finder == nil || a.found.total() >= int64(a.options.Keep) {
		return // what is not shown is not asked about
	}
	for i := range v.findings {
		f := &v.findings[i]
		if f.Problem != Missing || f.EventID == uuid.Nil {
			continue
		}
		answer := a.find(ctx, []question{{event: f.EventID}})[0]
		switch {
		case answer.err != nil:
			f.What += "; the provider did not say what it knows"
		case answer.found.Known && answer.found.Status == domain.ChargeCaptured:
			f.What += "; the provider captured " + answer.found.Amount.String()
			v.add(Finding{Problem: UnrecordedCapture, At: f.At, EventID: f.EventID, OrderID: f.OrderID, What: "the provider captured " + answer.found.Amount.String() + ", here nothing is known of it"})
		case answer.found.Known:
			f.What += "; the provider has it as " + string(answer.found.Status)
		default:
			f.What += "; the provider knows nothing of it"
		}
	}
}
