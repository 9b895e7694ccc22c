package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// setAside gets an intent that could not be taken out of the way of the others: it
// is due again later. One that the database refuses would be refused whenever it is
// tried, and is parked, if it can at least be written as that. One that somebody
// else has taken meanwhile is not due any more and is left alone.
func (w *Worker) setAside(ctx context.Context, id uuid.UUID, cause error) error {
	if errors.Is(cause, ErrData) {
		err := w.change(ctx, id, func(r *ruling, in *Intent) {
			r.parkKnown(in, "the database refuses a value of it, so that it cannot be finished: "+in.known())
		})
		if !errors.Is(err, ErrData) {
			return err
		}
	}
	return w.change(ctx, id, func(r *ruling, in *Intent) {
		in.DueAt = r.now.Add(pause(r.now.Sub(in.CreatedAt)/4, minOrderPoll, maxOrderPoll))
		if in.State == Calling {
			in.LeaseUntil = in.DueAt // its owner's time is over either way
		}
		r.save(in)
	})
}

// change rewrites a due intent in a transaction of its own.
func (w *Worker) change(ctx context.Context, id uuid.UUID, decide func(*ruling, *Intent)) error {
	r := newRuling(&w.policy, w.clock.Now())
	err := w.book.Aside(ctx, func(tx Tx) error {
		intents, err := tx.Lock(ctx, []uuid.UUID{id})
		if err != nil {
			return err
		}
		in := intents[id]
		if in == nil || in.State.Dead() || in.DueAt.After(r.now) {
			return nil
		}
		decide(r, in)
		return r.write(ctx, tx)
	})
	if err == nil {
		w.report(ctx, r)
	}
	return err
}

// doubt marks an intent that may have been sent, or was charged, whatever else is
// known of it: as a dead letter it keeps its order.
func (i *Intent) doubt(now time.Time) {
	i.MaybeSent = true
	if i.FirstAttemptAt.IsZero() {
		i.FirstAttemptAt = now
	}
}

// parkRefused parks an event whose answer the database refuses to record.
func (b *Biller) parkRefused(ctx context.Context, e *Event, lease *Intent, a Answer) error {
	r := newRuling(&b.policy, b.clock.Now())
	err := b.book.Aside(ctx, func(tx Tx) error {
		s, err := situate(ctx, tx, e)
		if err != nil || !s.intent.ownedBy(lease.Token) {
			return err // whoever has the lease now, or has ended it, sees to it
		}
		s.intent.spend(r.policy, a)
		if a.Kind == Captured {
			s.intent.doubt(r.now)
		}
		r.park(s.intent, ReasonNeedsReconciliation, bounded("the database refuses a value of the answer: "+a.known()))
		return r.write(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("park %s: %w", e.ID, err)
	}
	b.report(ctx, r)
	return nil
}
