package domain

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
)

// maxRound bounds how many answers are recorded in one transaction.
const maxRound = 256

// late is the answer to a call that no main transaction records: one that its
// batch has left behind or lost, or that of a retry.
type late struct {
	event  *Event
	lease  *Intent
	answer Answer
	err    error         // why it is not recorded; valid once it was in a round
	done   chan struct{} // holds a token when it was
}

func newLate(e *Event, lease *Intent, a Answer) *late {
	return &late{event: e, lease: lease, answer: a, done: make(chan struct{}, 1)}
}

// lates brings answers that come at one time into one transaction: whoever finds
// nobody recording does it for all who come meanwhile. Each by itself, they would
// queue for the few side connections where they are many, longer than their leases
// last, and what is not recorded by then is sent once more. The zero value is ready.
type lates struct {
	mu      sync.Mutex
	waiting []*late
	busy    bool // somebody is recording
}

// settle returns once the answer was in a round, with what came of it, or when ctx ends.
func (q *lates) settle(ctx context.Context, l *late, record func(context.Context, []*late)) error {
	q.mu.Lock()
	q.waiting = append(q.waiting, l)
	lead := !q.busy
	q.busy = true
	q.mu.Unlock()
	if lead {
		for round := q.take(); round != nil; round = q.take() {
			record(ctx, round)
			for _, each := range round {
				each.done <- struct{}{}
			}
		}
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		q.withdraw(l)
		return ctx.Err()
	}
}

// take returns the next round; nil when nobody waits, and then nobody records any more.
func (q *lates) take() []*late {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxRound)
	if n == 0 {
		q.busy, q.waiting = false, nil
		return nil
	}
	round := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return round
}

// withdraw takes back an answer that is in no round yet.
func (q *lates) withdraw(l *late) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, each := range q.waiting {
		if each == l {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			return
		}
	}
}

// settleRound records answers: a single one in full, several of them put down together.
func (b *Biller) settleRound(ctx context.Context, round []*late) {
	// Whose lease it is that ends first must not matter to the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.CommitMargin)
	defer cancel()
	alone := round
	if len(round) > 1 {
		others, err := b.putDown(ctx, round)
		switch {
		case err == nil:
			alone = others
		case !errors.Is(err, ErrData):
			for _, l := range round {
				l.err = err
			}
			return
		}
	}
	for _, l := range alone {
		l.err = b.settle(ctx, l.event, l.lease, l.answer)
	}
}

// putDown writes answers onto their intents in one short transaction, and returns
// those whose intent is not theirs any more. A definite one is finished by the
// next claim or by the worker, for which there is no hurry: what is answered is not
// sent again. No charge is written here, so that nobody waits for an order's key.
func (b *Biller) putDown(ctx context.Context, round []*late) (others []*late, err error) {
	r := newRuling(&b.policy, b.clock.Now())
	err = b.book.Aside(ctx, func(tx Tx) error {
		ids := make([]uuid.UUID, len(round))
		for i, l := range round {
			ids[i] = l.event.ID
		}
		intents, err := tx.Lock(ctx, ids)
		if err != nil {
			return err
		}
		for _, l := range round {
			in := intents[l.event.ID]
			if !in.ownedBy(l.lease.Token) || in.State != Calling {
				others = append(others, l)
				continue
			}
			in.spend(r.policy, l.answer)
			l.err = nil
			if l.answer.Kind.Definite() {
				r.keep(in, l.answer)
			} else {
				r.reschedule(situation{event: l.event, intent: in, claims: in.Claimed}, l.answer)
			}
		}
		return r.write(ctx, tx)
	})
	if err != nil {
		return nil, fmt.Errorf("put %d answers down: %w", len(round), err)
	}
	b.report(ctx, r)
	return others, nil
}
