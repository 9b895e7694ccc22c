package payment

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"example.com/billing/internal/domain"
)

const (
	// leastInFlight is how far a provider that slows down can push us back.
	leastInFlight = 16
	// firstInFlight is where the limit starts, where MAX_IN_FLIGHT lets it: a slow
	// provider needs many at once, and a fast one never has them.
	firstInFlight = 1024
	// limitWindow is how often the limit moves, at most.
	limitWindow = 100 * time.Millisecond
	// throttlePause is how long a place stays taken when the provider answers 429
	// without saying for how long; maxThrottlePause bounds what it says.
	throttlePause    = 250 * time.Millisecond
	maxThrottlePause = 2 * time.Second
)

// Limiter adapts the number of charges in flight to the provider: more while its
// latency stays what it was, fewer when it rises or when it asks us to slow down.
// It implements [domain.Limiter].
type Limiter struct {
	places adaptivelimiter.AdaptiveLimiter[any]
}

// NewLimiter returns a limiter of at most maxInFlight charges.
func NewLimiter(maxInFlight int) *Limiter {
	most := uint(max(maxInFlight, 1))
	return &Limiter{adaptivelimiter.NewBuilder[any]().
		WithLimits(min(leastInFlight, most), most, min(firstInFlight, most)).
		WithMaxLimitFunc(func(int) float64 { return float64(most) }). // bursts come in whole batches
		WithRecentWindow(limitWindow, 30*time.Second, 50).
		WithRecentQuantile(0.5). // a provider's slowest answers say little about its load
		Build()}
}

// Limit is how many charges may be in flight now.
func (l *Limiter) Limit() int { return l.places.Limit() }

// Enter implements [domain.Limiter].
func (l *Limiter) Enter(ctx, stop, shut context.Context) domain.Place {
	if permit, ok := l.places.TryAcquirePermit(); ok {
		return place{permit}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	defer context.AfterFunc(shut, cancel)()
	permit, err := l.places.AcquirePermit(ctx)
	if err != nil {
		return nil
	}
	return place{permit}
}

type place struct{ permit adaptivelimiter.Permit }

// Leave implements [domain.Place]. A throttled charge keeps its place for a
// while: that is what slowing down means, and the limit learns from it.
func (p place) Leave(a domain.Answer) {
	switch {
	case a.Posts == 0:
		p.permit.Drop()
	case a.Status == 429 || a.Status == 503 && a.RetryAfter > 0:
		pause := throttlePause
		if a.RetryAfter > 0 {
			pause = min(a.RetryAfter, maxThrottlePause)
		}
		time.AfterFunc(pause, p.permit.Record)
	default:
		p.permit.Record()
	}
}
