package domain

import (
	"context"
	"log/slog"
)

// Limiter says how many charges may be in flight at a time.
type Limiter interface {
	// Enter waits for a place until either context is done; then it returns nil.
	Enter(stop, ctx context.Context) Place
}

// Place is the permission to have one charge in flight.
type Place interface {
	// Leave gives the place back and tells how the charge went; an answer without
	// a POST says nothing about the provider.
	Leave(Answer)
}

// caller sends charges, as many at a time as the limiter lets it, and minds the gate.
type caller struct {
	provider Provider
	gate     *Gate
	limiter  Limiter
	log      *slog.Logger
}

// fixedLimiter admits so many charges at a time, whatever the provider does.
type fixedLimiter chan struct{}

func newFixedLimiter(n int) fixedLimiter { return make(fixedLimiter, n) }

func (l fixedLimiter) Enter(stop, ctx context.Context) Place {
	select {
	case l <- struct{}{}:
		return l
	case <-stop.Done():
	case <-ctx.Done():
	}
	return nil
}

func (l fixedLimiter) Leave(Answer) { <-l }

// call charges, unless stop is done, the gate is closed to the pass, or ctx ends
// while it waits for a place: then it withholds the request.
func (c *caller) call(stop, ctx context.Context, pass Pass, request ChargeRequest) (answer Answer) {
	place := c.limiter.Enter(stop, ctx)
	if place != nil {
		defer func() { place.Leave(answer) }()
	}
	switch {
	case stop.Err() != nil:
		return Answer{Kind: Withheld, Detail: "stopping"}
	case ctx.Err() != nil || place == nil:
		return Answer{Kind: Withheld, Detail: "charge budget spent"}
	case !c.gate.allows(pass):
		return Answer{Kind: Withheld, Detail: "intake is paused"}
	}
	answer = c.provider.Charge(ctx, request)
	if c.gate.observe(answer) {
		if closed, reason, _ := c.gate.Closed(); closed {
			c.log.ErrorContext(ctx, "intake is paused: the provider refuses us", "reason", reason)
		} else {
			c.log.InfoContext(ctx, "intake goes on: the provider answers again")
		}
	}
	return answer
}
