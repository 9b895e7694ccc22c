package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// ErrUnderWay is returned when another turn did not end in time.
var ErrUnderWay = errors.New("another turn of retention is under way")

// warn tells, once, that this instance is to keep for shorter than was kept so far.
func (k *Keeper) warn(ctx context.Context, r *domain.RetentionReport) {
	if r.Wanted != 0 && k.Status().Report.Wanted == 0 {
		k.parts.Logger.WarnContext(ctx, "retention: DEDUP_RETENTION is shorter than what was kept so far: that is kept until it is confirmed by billing retention run --shorten",
			"dedup_retention", r.Wanted.String(), "kept_for", r.Retention.String())
	}
}

// ByHand says how a turn by hand is meant.
type ByHand struct {
	Dry     bool // it finds out, and changes nothing
	Shorten bool // it may forget what was kept so far, and so may the services from then on
}

// Once makes one turn now, also beside a service that does so by itself. It waits no
// longer than that for a turn that is under way. Where it would keep for shorter than was
// kept so far it is [ErrShorter], unless that is meant.
func (k *Keeper) Once(ctx context.Context, how ByHand, wait time.Duration) (domain.RetentionReport, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		begun, err := k.begin(ctx)
		if err != nil {
			return domain.RetentionReport{}, err
		}
		if begun {
			break
		}
		select {
		case <-deadline.C:
			return domain.RetentionReport{}, fmt.Errorf("%w, and did not end within %s", ErrUnderWay, wait)
		case <-ctx.Done():
			return domain.RetentionReport{}, ctx.Err()
		case <-time.After(k.cfg.Pause):
		}
	}
	report, err := k.turn(ctx, k.parts.Clock.Now(), how)
	return report, errors.Join(err, k.end(ctx), k.parts.Place.Resign())
}
