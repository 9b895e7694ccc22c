package app

import (
	"context"

	"github.com/google/uuid"
	"golang.org/x/time/rate"

	"example.com/billing/internal/domain"
)

// pacedFinder asks no more often than the provider may be asked.
type pacedFinder struct {
	finder domain.Finder
	pace   *rate.Limiter
}

// paced bounds how often a finder is asked; nil stays nil.
func paced(finder domain.Finder, perSecond int) domain.Finder {
	if finder == nil {
		return nil
	}
	return &pacedFinder{finder: finder, pace: rate.NewLimiter(rate.Limit(perSecond), 1)}
}

// Find implements [domain.Finder].
func (f *pacedFinder) Find(ctx context.Context, key uuid.UUID) (domain.Found, error) {
	if err := f.pace.Wait(ctx); err != nil {
		return domain.Found{}, err
	}
	return f.finder.Find(ctx, key)
}
