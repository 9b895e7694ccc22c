package domain

import (
	"context"
	"sync"
	"time"
)

// Cause is why a gate is closed.
type Cause string

// The causes. Where both hold, the refusal is shown first: it names what to mend.
const (
	// CauseRefused: the provider refuses us rather than a charge.
	CauseRefused Cause = "refused"
	// CauseFailing: most charges end without a definite answer.
	CauseFailing Cause = "failing"
)

// Gate stops intake and worker where calls are of no use, so that the backlog
// stays in Kafka: while the provider refuses us (a wrong key or URL would fail
// every charge alike), and while it fails as a whole. As long as it is closed one
// probe a second goes out: a due intent, or the next record where none is due. Any
// other answer ends a refusal, and a definite answer to a probe ends a failure.
type Gate struct {
	clock Clock

	mu        sync.Mutex
	refused   trouble
	failing   trouble
	since     time.Time // when it opened or closed last; zero before the first time
	nextProbe time.Time
	opened    chan struct{}      // closed when the gate opens; replaced when it closes
	open      context.Context    // ends when the gate closes; replaced when it opens
	shut      context.CancelFunc // ends it
	probes    chan struct{}      // the probe left to the lanes, where no intent is due
	counts    GateCounts
}

// trouble is one cause.
type trouble struct {
	on     bool
	reason string
}

// GateState is what a gate shows.
type GateState struct {
	Closed bool
	Cause  Cause // empty while it is open
	Reason string
	// Failing is the reason of a failure that a refusal is shown before; empty otherwise.
	Failing string
	Since   time.Time // when it opened or closed last; zero before the first time
	Counts  GateCounts
}

// GateCounts count since the start of the process.
type GateCounts struct {
	Refusals int64 // times that the provider began to refuse us
	Failures int64 // times that it began to fail
	Probes   int64 // sent
}

// NewGate returns an open gate.
func NewGate(clock Clock) *Gate {
	g := &Gate{clock: clock, opened: make(chan struct{}), probes: make(chan struct{}, 1)}
	close(g.opened)
	g.open, g.shut = context.WithCancel(context.Background())
	return g
}

// Pass is the permission to take a batch.
type Pass struct {
	probe    bool
	progress Progress // of the batch that goes with it; nil: its position is not ours to keep
}

// Limit returns how many records the next batch may hold, at most limit.
func (p Pass) Limit(limit int) int {
	if p.probe {
		return min(1, limit)
	}
	return limit
}

// State returns what the gate is like now.
func (g *Gate) State() GateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GateState{Closed: g.closed(), Since: g.since, Counts: g.counts}
	switch {
	case g.refused.on:
		s.Cause, s.Reason, s.Failing = CauseRefused, g.refused.reason, g.failing.reason
	case g.failing.on:
		s.Cause, s.Reason = CauseFailing, g.failing.reason
	}
	return s
}

// Closed reports whether intake is stopped, why, and since when.
func (g *Gate) Closed() (closed bool, reason string, since time.Time) {
	s := g.State()
	return s.Closed, s.Reason, s.Since
}

// closed: the lock is held.
func (g *Gate) closed() bool { return g.refused.on || g.failing.on }

// Admit waits until the gate is open, or until a probe is left to the caller.
func (g *Gate) Admit(ctx context.Context) (Pass, error) {
	for {
		g.mu.Lock()
		closed, opened := g.closed(), g.opened
		g.mu.Unlock()
		if !closed {
			return Pass{}, ctx.Err()
		}
		select {
		case <-opened:
		case <-g.probes:
			g.putProbeOff() // the second begins when it goes out
			return Pass{probe: true}, nil
		case <-ctx.Done():
			return Pass{}, ctx.Err()
		}
	}
}

// allows reports whether the holder of the pass may send now.
func (g *Gate) allows(p Pass) bool {
	return p.probe || g.admitting(p).Err() == nil
}

// admitting returns a context that ends when the holder of the pass may send no more.
func (g *Gate) admitting(p Pass) context.Context {
	if p.probe {
		return context.Background()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// takeProbe gives the caller the probe of this second, if the gate is closed and
// nobody has taken it. One that was left to the lanes, and that none of them had a
// record for, is taken back.
func (g *Gate) takeProbe() (Pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if !g.closed() || now.Before(g.nextProbe) {
		return Pass{}, false
	}
	g.nextProbe = now.Add(probePause)
	g.recallProbe()
	return Pass{probe: true}, true
}

// returnProbe gives back a probe with which nothing was sent: the next may go at once.
func (g *Gate) returnProbe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nextProbe = time.Time{}
}

// leaveProbe hands a probe that found no due intent to the next record.
func (g *Gate) leaveProbe() {
	select {
	case g.probes <- struct{}{}:
	default: // one is waiting already
	}
}

func (g *Gate) recallProbe() {
	select {
	case <-g.probes:
	default:
	}
}

func (g *Gate) putProbeOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nextProbe = g.clock.Now().Add(probePause)
}

// observe takes an answer that came of a call with this pass; tripped says that
// it was one failure too many. It reports whether the gate opened, closed, or is
// closed for another cause than before.
func (g *Gate) observe(p Pass, a Answer, tripped bool) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused, failing := g.refused.on, g.failing.on
	if p.probe {
		g.counts.Probes++
	}
	switch {
	case a.Kind == Misconfigured && !refused:
		g.refused = trouble{on: true, reason: a.Detail}
		g.counts.Refusals++
	case a.Kind != Misconfigured && a.Status != 0:
		g.refused = trouble{}
	}
	switch {
	case p.probe && a.Kind.Definite():
		g.failing = trouble{}
	case tripped && !failing:
		g.failing = trouble{on: true, reason: "most charges end without a definite answer; the latest: " + a.Detail}
		g.counts.Failures++
	}
	switch was, is := refused || failing, g.closed(); {
	case is && !was:
		g.close()
	case was && !is:
		g.since = g.clock.Now()
		g.open, g.shut = context.WithCancel(context.Background())
		close(g.opened)
	}
	return refused != g.refused.on || failing != g.failing.on
}

// close: the lock is held.
func (g *Gate) close() {
	g.since = g.clock.Now()
	g.nextProbe = g.since.Add(probePause) // what closed it was the first one
	g.opened = make(chan struct{})
	g.recallProbe() // left over from an earlier closure
	g.shut()
}
