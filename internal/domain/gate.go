package domain

import (
	"context"
	"sync"
	"time"
)

// Gate stops intake while the provider refuses us rather than a charge: a wrong
// key or URL would fail every charge alike, so the backlog stays in Kafka. While
// it is closed one probe a second goes out; any other answer opens it.
type Gate struct {
	clock Clock

	mu        sync.Mutex
	closed    bool
	reason    string
	since     time.Time
	nextProbe time.Time
	opened    chan struct{} // closed when the gate opens; replaced when it closes
	probes    chan struct{} // probes left to the lanes, where no intent is due
}

// NewGate returns an open gate.
func NewGate(clock Clock) *Gate {
	opened := make(chan struct{})
	close(opened)
	return &Gate{clock: clock, opened: opened, probes: make(chan struct{}, 1)}
}

// Pass is the permission to take a batch.
type Pass struct{ probe bool }

// Limit returns how many records the next batch may hold, at most limit.
func (p Pass) Limit(limit int) int {
	if p.probe {
		return min(1, limit)
	}
	return limit
}

// Closed reports whether intake is stopped, why, and since when.
func (g *Gate) Closed() (closed bool, reason string, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed, g.reason, g.since
}

// Admit waits until the gate is open, or until a probe is left to the caller.
func (g *Gate) Admit(ctx context.Context) (Pass, error) {
	for {
		g.mu.Lock()
		closed, opened := g.closed, g.opened
		g.mu.Unlock()
		if !closed {
			return Pass{}, ctx.Err()
		}
		select {
		case <-opened:
		case <-g.probes:
			return Pass{probe: true}, nil
		case <-ctx.Done():
			return Pass{}, ctx.Err()
		}
	}
}

// allows reports whether the holder of the pass may send now.
func (g *Gate) allows(p Pass) bool {
	closed, _, _ := g.Closed()
	return p.probe || !closed
}

// takeProbe gives the caller the probe of this second, if the gate is closed and
// nobody has taken it.
func (g *Gate) takeProbe() (Pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if !g.closed || now.Before(g.nextProbe) {
		return Pass{}, false
	}
	g.nextProbe = now.Add(probePause)
	return Pass{probe: true}, true
}

// leaveProbe hands a probe that found no due intent to the next record.
func (g *Gate) leaveProbe() {
	select {
	case g.probes <- struct{}{}:
	default: // one is waiting already
	}
}

// observe closes the gate on a refusal and opens it on any other answer that
// came from the provider. It reports whether the gate changed.
func (g *Gate) observe(a Answer) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case a.Kind == Misconfigured && !g.closed:
		g.closed, g.reason, g.since = true, a.Detail, g.clock.Now()
		g.nextProbe = g.since.Add(probePause)
		g.opened = make(chan struct{})
		select {
		case <-g.probes: // one left over from an earlier closure
		default:
		}
		return true
	case a.Kind != Misconfigured && a.Status != 0 && g.closed:
		g.closed, g.reason, g.since = false, "", g.clock.Now()
		close(g.opened)
		return true
	}
	return false
}
