package retention

import (
	"context"
	"errors"
	"time"

	"example.com/billing/internal/domain"
)

// attach makes the ranges that are missing. What stands in the way of one may stand in
// the way of all of them: a lock that is not to be had ends it for this turn.
func (t *turn) attach(ctx context.Context, spent spent, spans []domain.Span) {
	busy := false
	for _, span := range spans {
		if busy || spent.already() {
			t.missing(span, whyBusy)
			continue
		}
		moved, err := t.attachOne(ctx, span)
		switch {
		case err == nil && t.dry:
			t.missing(span, "would be attached")
			t.report.Attached++
			t.report.Moved += int64(moved)
		case err == nil:
			t.report.Attached++
			t.report.Moved += int64(moved)
		case errors.Is(err, domain.ErrBusy):
			busy = true
			t.missing(span, whyBusy)
		case errors.Is(err, domain.ErrCrowded):
			t.missing(span, err.Error())
		default:
			t.missing(span, err.Error())
			t.errs = append(t.errs, err)
		}
	}
}

// whyBusy is why something is put off.
const whyBusy = "batches that are open hold a lock on it; it is tried again in the next turn"

func (t *turn) missing(span domain.Span, why string) {
	t.lost = append(t.lost, domain.RetentionRange{Span: span, State: domain.RangeMissing, Why: why})
}

func (t *turn) attachOne(ctx context.Context, span domain.Span) (moved int, err error) {
	if t.dry {
		moved, err = t.parts.Table.Lying(ctx, span, t.cfg.MoveMax+1)
		if err == nil && moved > t.cfg.MoveMax {
			err = domain.ErrCrowded
		}
		return moved, err
	}
	err = t.patiently(ctx, func(wait time.Duration) error {
		moved, err = t.parts.Table.Attach(ctx, span, t.cfg.MoveMax, wait)
		return err
	})
	return moved, err
}
