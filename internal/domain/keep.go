package domain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// keepRest is the pause between the tries to keep the answers of a lost batch.
	keepRest = 100 * time.Millisecond
	// storeRest is the pause after the store failed somebody who has time.
	storeRest = time.Second
)

// keepAnswers saves what was learnt from the provider when the transaction that
// should have recorded it is lost. It claims nothing: each answer is put down on
// its intent, and the next run of the batch finishes from there without a call.
// What took the transaction may take the store away for a while, or leave locks
// behind; so it tries again until the leases end, as the worker does: then the
// intents are due for whoever takes them over, and would be sent once more. When
// ctx ends, it gives up once it has tried for as long as a commit might have taken.
func (b *Biller) keepAnswers(ctx context.Context, batch *batch) {
	opened := batch.opened()
	if len(opened) == 0 {
		return
	}
	margin := b.policy.CommitMargin
	leased := opened[0].opened.LeaseUntil.Sub(b.clock.Now()) // all of a batch are leased at once
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(margin, leased))
	defer cancel()
	hurry := time.AfterFunc(margin, func() { context.AfterFunc(ctx, cancel) })
	defer hurry.Stop()
	b.keep(kept, opened)
}

// keep settles the answers together, again and again until all are or ctx ends.
func (b *Biller) keep(ctx context.Context, opened []*item) {
	left := make([]*late, len(opened))
	for i, it := range opened {
		left[i] = newLate(&it.event, it.opened, it.answer)
	}
	for {
		b.settleRound(ctx, left)
		left = slices.DeleteFunc(left, func(l *late) bool { return l.err == nil || b.giveUpOn(ctx, l) })
		if len(left) == 0 {
			return
		}
		if !sleep(ctx, keepRest) {
			b.log.ErrorContext(ctx, "answers not kept; their intents stay under the lease",
				"count", len(left), "event_id", left[0].event.ID, "answer", left[0].answer.Kind.String(), "error", left[0].err)
			return
		}
	}
}

// giveUpOn parks an intent whose answer the database refuses, for it would be refused as often
// as it is tried. It reports whether there is no more to be tried.
func (b *Biller) giveUpOn(ctx context.Context, l *late) bool {
	if !errors.Is(l.err, ErrData) {
		return false
	}
	err := b.parkRefused(ctx, l.event, l.lease, l.answer)
	if errors.Is(err, ErrData) {
		b.log.ErrorContext(ctx, "answer not kept: the database refuses it, and to park its intent",
			"event_id", l.event.ID, "answer", l.answer.Kind.String(), "error", err)
		return true
	}
	return err == nil
}

// settle records the answer to a call made under a lease, in a short transaction
// of its own.
func (b *Biller) settle(ctx context.Context, e *Event, lease *Intent, a Answer) error {
	r := newRuling(&b.policy, b.clock.Now())
	err := b.book.Aside(ctx, func(tx Tx) error {
		s, err := situate(ctx, tx, e)
		if err != nil {
			return err
		}
		s.record = &lease.Record
		r.settle(s, lease.Token, a)
		return r.write(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("settle %s: %w", e.ID, err)
	}
	b.report(ctx, r)
	return nil
}

// settleWithin records the answer, trying again until the lease ends: then the
// intent is due for whoever takes it over. Answers that come while others are
// being recorded are recorded together. One that the database refuses is parked,
// for it would be refused again, and asked for again.
func (b *Biller) settleWithin(ctx context.Context, e *Event, lease *Intent, a Answer) {
	l := newLate(e, lease, a)
	for {
		err := b.lates.settle(ctx, l, b.settleRound)
		if err == nil {
			return
		}
		b.log.ErrorContext(ctx, "answer not recorded", "event_id", e.ID, "answer", a.Kind.String(), "error", err)
		if errors.Is(err, ErrData) && b.parkRefused(ctx, e, lease, a) == nil {
			return
		}
		if !sleep(ctx, storeRest) {
			return
		}
	}
}
