package domain

import (
	"context"
	"time"
)

// intend commits an intent for every event to be charged, on a connection of its
// own, and then looks again: only what is still neither final nor claimed by
// another event may be sent.
func (b *Biller) intend(ctx context.Context, tx Tx, batch *batch) error {
	charging := batch.charging()
	if len(charging) == 0 {
		return nil
	}
	now := b.clock.Now()
	intents := make([]Intent, len(charging))
	for i, it := range charging {
		intents[i] = newIntent(&it.event, it.record, b.policy.Group, now)
		intents[i].lease(&b.policy, now)
	}
	opened, err := b.book.Open(ctx, intents)
	if err != nil {
		return err
	}
	for i, it := range charging {
		if opened[it.event.ID] {
			it.opened = &intents[i]
			it.opened.read()
		}
	}
	Reach(ctx, b.policy.Faults, AfterIntent)
	look := tx.Look
	if len(opened) == len(charging) {
		look = tx.Final // no intent is in the way
	}
	facts, err := look(ctx, subjects(charging))
	if err != nil {
		return err
	}
	for _, it := range charging {
		it.lookAgain(facts)
	}
	return nil
}

// lookAgain decides the fate of an event anew, once its intent is committed or
// was kept out by another one.
func (it *item) lookAgain(facts Facts) {
	if it.opened != nil {
		// Ours: it stands for the event and its order until we write to it.
		delete(facts.Intents, it.event.ID)
		delete(facts.Holders, it.event.OrderID)
	}
	it.classify(facts)
	if it.fate == fateCharged && it.opened == nil {
		it.fate = fateSibling // whoever was in the way is gone: the worker sees to it
	}
}

// charge calls the provider for every event that may be sent, as wide as its
// latency asks for, and waits for the answers. What has begun and is not answered
// at the soft deadline is left behind: its intent is claimed as it is, and its
// answer is recorded when it comes.
func (b *Biller) charge(stop, work context.Context, pass Pass, batch *batch) {
	ready := batch.charging()
	if len(ready) == 0 {
		return
	}
	calls := newCalls(ready)
	batch.calls = calls
	work = context.WithoutCancel(work) // a call left behind outlives the batch
	caller := func() {
		for it := calls.next(); it != nil; it = calls.next() {
			answer := b.call(stop, work, pass, &it.event, it.opened)
			if !calls.answered(it, answer) {
				b.settleLate(work, it, answer, calls)
			}
		}
	}
	b.widen(calls, len(ready), caller)
	calls.wait(b.pace.patience(b.policy.SoftDeadline, b.policy.ChargeBudget))
}

// widen has n calls begun by as many callers as they need.
func (b *Biller) widen(calls *calls, n int, caller func()) {
	batches := b.calling.Add(1)
	defer b.calling.Add(-1)
	width, answers := 0, 0
	for more := b.pace.width(n, int(batches)); ; {
		for range more {
			b.hands.do(caller)
		}
		width += more
		if calls.haveBegun(b.pace.hesitation()) {
			return
		}
		before := answers
		answers = calls.answers()
		more = b.pace.wider(n, int(b.calling.Load()), width, answers > before)
	}
}

// settleLate records the answer to a call that was left behind, once the
// transaction of its batch has ended.
func (b *Biller) settleLate(ctx context.Context, it *item, answer Answer, calls *calls) {
	<-calls.ended
	ctx, cancel := context.WithTimeout(ctx, b.policy.Lease)
	defer cancel()
	b.settleWithin(ctx, &it.event, it.opened, answer)
}

// Drain waits for the calls that batches have left behind. Each ends within its
// lease. No batch may be billed afterwards.
func (b *Biller) Drain() { b.hands.drain() }

// call sends the charge of a leased intent, within its budget.
func (b *Biller) call(stop, work context.Context, pass Pass, e *Event, in *Intent) Answer {
	ctx, cancel := context.WithTimeout(work, b.policy.budget(in, b.clock.Now()))
	defer cancel()
	began := time.Now() //nolint:forbidigo // a latency, measured by the monotonic clock
	answer := b.caller.call(stop, ctx, pass, e.Request())
	if answer.Posts > 0 {
		Reach(ctx, b.policy.Faults, AnswerReceived)
		b.pace.observe(time.Since(began) / time.Duration(answer.Posts))
	}
	return answer
}
