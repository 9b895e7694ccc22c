package domain

import (
	"context"
	"fmt"
)

// Bounds of the look for strays.
const (
	strayTurns = 50   // turns of the worker from one look to the next: 10 s where nothing is due
	maxStrays  = 1000 // ended in one look
)

// endStrays ends intents for which no claim will ever come: a process opened one for an
// event that became final meanwhile, and died before it looked again. It would keep its
// order for good, though the event may have been declined, and the order be free.
//
// Nothing was sent under it. Whoever makes an event final without its intent's row has
// found none, and the order claimed by a charge, or the row's place taken by its own: either
// stands before the stray does, so that its owner would have seen it when it looked again,
// and have sent nothing. An owner that comes late after all finds its row gone, and
// sends nothing either.
func (w *Worker) endStrays(ctx context.Context) {
	for range maxStrays {
		in, err := w.endStray(ctx)
		switch {
		case err != nil:
			w.log.ErrorContext(ctx, "look for stray intents", "error", err)
			return
		case in == nil:
			return
		}
		w.log.InfoContext(ctx, "an intent that nobody claims is ended: its event was final before it could be sent",
			"event_id", in.EventID, "owner", in.Owner)
	}
}

// endStray ends one in a transaction of its own; nil: there is none.
func (w *Worker) endStray(ctx context.Context) (*Intent, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.policy.CommitMargin)
	defer cancel()
	var in *Intent
	r := newRuling(&w.policy, w.clock.Now())
	err := w.book.Aside(ctx, func(tx Tx) (err error) {
		if in, err = tx.Stray(ctx, r.now); err != nil || in == nil {
			return err
		}
		r.drop(in)
		return r.write(ctx, tx)
	})
	if err != nil && in != nil {
		err = fmt.Errorf("end %s: %w", in.EventID, err)
	}
	return in, err
}
