package domain

import (
	"context"
	"log/slog"
)

// Limiter says how many charges may be in flight at a time.
type Limiter interface {
	// Enter waits for a place until any of the contexts is done; then it returns
	// nil. It returns a place that is free at once whatever they are.
	Enter(ctx, stop, shut context.Context) Place
}

// Place is the permission to have one charge in flight.
type Place interface {
	// Leave gives the place back and tells how the charge went; an answer without
	// a POST says nothing about the provider.
	Leave(Answer)
}

// Breaker judges from how charges end whether the provider as a whole fails.
type Breaker interface {
	// Record takes how a charge ended. It reports whether that was one failure too
	// many: most of the recent charges ended without a definite answer. From then
	// on nothing counts until Reset.
	Record(Answer) (tripped bool)
	// Reset forgets what was recorded.
	Reset()
}

// caller sends charges, as many at a time as the limiter lets it, and minds the gate.
type caller struct {
	provider Provider
	gate     *Gate
	limiter  Limiter
	breaker  Breaker // nil: nothing trips
	log      *slog.Logger
}

// fixedLimiter admits so many charges at a time, whatever the provider does.
type fixedLimiter chan struct{}

func newFixedLimiter(n int) fixedLimiter { return make(fixedLimiter, n) }

func (l fixedLimiter) Enter(ctx, stop, shut context.Context) Place {
	select {
	case l <- struct{}{}:
		return l
	case <-stop.Done():
	case <-shut.Done():
	case <-ctx.Done():
	}
	return nil
}

func (l fixedLimiter) Leave(Answer) { <-l }

// call charges, unless stop is done, the gate is closed to the pass, or ctx ends
// while it waits for a place: then it withholds the request.
func (c *caller) call(stop, ctx context.Context, pass Pass, request ChargeRequest) (answer Answer) {
	place := c.limiter.Enter(ctx, stop, c.gate.admitting(pass))
	if place != nil {
		defer func() { place.Leave(answer) }()
	}
	switch {
	case stop.Err() != nil:
		return Answer{Kind: Withheld, Detail: "stopping"}
	case !c.gate.allows(pass):
		return Answer{Kind: Withheld, Detail: "intake is paused"}
	case ctx.Err() != nil || place == nil:
		return Answer{Kind: Withheld, Detail: "charge budget spent"}
	}
	request.Once = pass.probe
	answer = c.provider.Charge(ctx, request)
	answer.Probe = pass.probe
	c.judge(ctx, pass, answer)
	return answer
}

// judge opens or closes the gate by what was answered.
func (c *caller) judge(ctx context.Context, pass Pass, answer Answer) {
	tripped := c.breaker != nil && c.breaker.Record(answer)
	if !c.gate.observe(pass, answer, tripped) {
		return
	}
	switch now := c.gate.State(); now.Cause {
	case CauseRefused:
		c.log.ErrorContext(ctx, "intake is paused: the provider refuses us", "reason", now.Reason)
	case CauseFailing:
		c.log.ErrorContext(ctx, "intake is paused: the provider fails", "reason", now.Reason)
	default:
		if c.breaker != nil {
			c.breaker.Reset()
		}
		c.log.InfoContext(ctx, "intake goes on: the provider answers again")
	}
}
