package domain

import (
	"context"
	"log/slog"
)

// caller sends charges, at most so many at a time, and minds the gate.
type caller struct {
	provider Provider
	gate     *Gate
	slots    chan struct{}
	log      *slog.Logger
}

func newCaller(p Provider, g *Gate, maxInFlight int, log *slog.Logger) *caller {
	return &caller{provider: p, gate: g, slots: make(chan struct{}, maxInFlight), log: log}
}

// call charges, unless stop is done, the gate is closed to the pass, or ctx ends
// while it waits for a slot: then it withholds the request.
func (c *caller) call(stop, ctx context.Context, pass Pass, request ChargeRequest) Answer {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-stop.Done():
		return Answer{Kind: Withheld, Detail: "stopping"}
	case <-ctx.Done():
		return Answer{Kind: Withheld, Detail: "no free slot within the charge budget"}
	}
	switch {
	case stop.Err() != nil:
		return Answer{Kind: Withheld, Detail: "stopping"}
	case ctx.Err() != nil:
		return Answer{Kind: Withheld, Detail: "charge budget spent"}
	case !c.gate.allows(pass):
		return Answer{Kind: Withheld, Detail: "intake is paused"}
	}
	answer := c.provider.Charge(ctx, request)
	if c.gate.observe(answer) {
		closed, reason, _ := c.gate.Closed()
		c.log.ErrorContext(ctx, "intake changed: the provider refuses us, or no longer does", "paused", closed, "reason", reason)
	}
	return answer
}
