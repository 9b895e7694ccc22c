package domain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the worker.
const (
	workerWidth  = 64                     // intents that it finishes at a time
	workerTakers = 3                      // leases it takes at a time, while there is more to take
	workerPoll   = 200 * time.Millisecond // pause when nothing is due
)

// Worker goes on with intents that are due: after an unknown answer, a crash,
// or because their order was busy. Any instance may run one; a lease makes sure
// that one of them acts at a time.
type Worker struct {
	*Biller
	lastTurn atomic.Int64 // Unix nanoseconds; 0 before the first
}

// NewWorker returns a worker that shares the biller's bounds.
func NewWorker(b *Biller) *Worker { return &Worker{Biller: b} }

// LastTurn is when the worker last looked for due intents and got an answer;
// zero before the first turn. It stands still while the store fails, and while
// every place is taken by a call.
func (w *Worker) LastTurn() time.Time {
	nanos := w.lastTurn.Load()
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// job is one leased intent.
type job struct {
	event  Event
	intent Intent
	pass   Pass
	// forgotten: the provider may have forgotten the key, so that the charge is
	// looked up before anything is sent.
	forgotten bool
}

// Run takes due intents until ctx ends, and returns when those it took are
// finished or put back. One taker looks for them all the time; the others join
// in while it finds some, since taking waits for the disk.
func (w *Worker) Run(ctx context.Context) {
	var takers, jobs sync.WaitGroup
	slots := make(chan struct{}, workerWidth)
	more := make(chan struct{}, workerTakers)
	for range workerTakers - 1 {
		takers.Go(func() {
			for {
				select {
				case <-more:
					w.takeAll(ctx, slots, more, &jobs)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for turn, rest := 0, time.Duration(0); sleep(ctx, rest); turn++ {
		rest = w.takeAll(ctx, slots, more, &jobs)
		if turn%strayTurns == 0 {
			w.endStrays(ctx)
		}
	}
	takers.Wait()
	jobs.Wait()
}

// takeAll takes intents until none is due, and says how long to rest then.
func (w *Worker) takeAll(ctx context.Context, slots, more chan struct{}, jobs *sync.WaitGroup) (rest time.Duration) {
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return 0
		}
		j, rest := w.next(ctx)
		if j == nil {
			<-slots
			if rest == 0 && ctx.Err() == nil {
				continue // dealt with without a call; there may be more
			}
			return rest
		}
		jobs.Go(func() {
			defer func() { <-slots }()
			w.work(ctx, j)
		})
		select {
		case more <- struct{}{}:
		default: // everybody is at it
		}
	}
}

// next takes a due intent, or says how long to rest.
func (w *Worker) next(ctx context.Context) (*job, time.Duration) {
	var pass Pass
	if closed, _, _ := w.caller.gate.Closed(); closed {
		var ok bool
		if pass, ok = w.caller.gate.takeProbe(); !ok {
			return nil, workerPoll
		}
	}
	j, found, err := w.take(ctx, pass)
	if err == nil {
		w.lastTurn.Store(w.clock.Now().UnixNano())
	}
	switch {
	case err != nil:
		w.log.ErrorContext(ctx, "retry worker", "error", err)
		return nil, storeRest
	case j == nil && found:
		if pass.probe {
			w.caller.gate.returnProbe()
		}
		return nil, 0 // finished without a call; there may be more
	case j == nil && pass.probe:
		w.caller.gate.leaveProbe()
	}
	if j == nil {
		return nil, workerPoll
	}
	j.pass = pass
	return j, 0
}

// take leases the longest due intent in a short transaction. Found without a job
// means that the intent was dealt with there and then.
func (w *Worker) take(ctx context.Context, pass Pass) (j *job, found bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.policy.CommitMargin)
	defer cancel()
	var due *Intent
	r := newRuling(&w.policy, w.clock.Now())
	err = w.book.Aside(ctx, func(tx Tx) error {
		if due, err = tx.Due(ctx, r.now); err != nil || due == nil {
			return err
		}
		if due.State == Calling {
			due.MaybeSent = true // its owner had the time to send
		}
		// An event that was accepted once stays so, whatever is required of new ones.
		event, err := Decoder{}.Decode(&due.Record)
		if err != nil {
			r.park(due, ReasonNeedsReconciliation, "the kept record is not valid any more: "+err.Error())
			return r.write(ctx, tx)
		}
		facts, err := tx.Look(ctx, []Subject{{EventID: due.EventID, OrderID: due.OrderID}})
		if err != nil {
			return err
		}
		old := w.policy.keyTooOld(due, r.now)
		if w.prepare(r, &event, due, facts) {
			j = &job{event: event, intent: *due, pass: pass, forgotten: old}
		}
		return r.write(ctx, tx)
	})
	switch {
	case due == nil:
		return nil, false, err
	case err != nil:
		return nil, false, errors.Join(fmt.Errorf("take %s: %w", due.EventID, err), w.setAside(ctx, due.EventID, err))
	}
	w.report(ctx, r)
	return j, true, nil
}

// prepare decides what becomes of a due intent, and reports whether it is leased
// now and may be sent after another look.
func (w *Worker) prepare(r *ruling, event *Event, in *Intent, facts Facts) bool {
	request := event.Request()
	holder, held := facts.Holders[in.OrderID]
	s := situation{event: event, intent: in, claims: true}
	s.finals(facts)
	switch {
	case in.State == Answered:
		r.settle(s, in.Token, *in.Answer)
	// What was surely not sent and will not be is settled here: whoever died of it under a
	// lease would leave behind what may have been sent, for people to look into.
	case in.State == Waiting && s.charge != nil:
		r.drop(in)
	case in.State == Waiting && s.order != nil:
		r.taken(s)
	case request.Hash() != in.RequestHash:
		r.park(in, ReasonNeedsReconciliation, "the request would differ from the one that the intent was made for")
	case r.policy.Finder == nil && r.policy.keyTooOld(in, r.now):
		r.park(in, ReasonNeedsReconciliation, "the provider may have forgotten the key; it is not sent again blindly")
	case in.State == Waiting && held && holder != in.EventID:
		r.postpone(in)
	default:
		in.lease(r.policy, r.now)
		r.save(in)
		return true
	}
	return false
}

// work looks again, calls with no transaction open, and records the answer.
func (w *Worker) work(stop context.Context, j *job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), w.policy.Lease)
	defer cancel()
	answer := Answer{Kind: Withheld, Detail: "not looked at again in time"}
	send, err := w.lookAgain(ctx, j)
	if err == nil && !send {
		if j.pass.probe {
			w.caller.gate.returnProbe()
		}
		return
	}
	if err == nil {
		Reach(ctx, w.policy.Faults, AfterIntent)
		answer = w.send(stop, ctx, j)
	}
	w.settleWithin(ctx, &j.event, &j.intent, answer)
}

// lookAgain reports whether the leased intent may be sent. What turned out to be
// final is recorded.
func (w *Worker) lookAgain(ctx context.Context, j *job) (send bool, err error) {
	r := newRuling(&w.policy, w.clock.Now())
	err = w.book.Aside(ctx, func(tx Tx) error {
		s, err := situate(ctx, tx, &j.event)
		if err != nil {
			return err
		}
		switch {
		case !s.intent.ownedBy(j.intent.Token):
		case s.charge != nil:
			r.drop(s.intent)
		case s.order != nil:
			s.intent.spend(r.policy, Answer{Kind: Withheld})
			r.taken(s)
		default:
			send = true
			return nil
		}
		return r.write(ctx, tx)
	})
	if err != nil {
		return false, fmt.Errorf("look again at %s: %w", j.event.ID, err)
	}
	w.report(ctx, r)
	return send, nil
}

// sleep waits for d and reports whether ctx is still live.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
