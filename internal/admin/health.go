package admin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/billing/internal/domain"
)

const (
	// checkBound is the longest that a check may take.
	checkBound = 2 * time.Second
	// checkReuse is how long a check's result is given out again, so that polling
	// cannot hammer what is checked.
	checkReuse = time.Second
)

// Check tells how well a component is. Run gets 2 seconds, and a failure is
// reported in its place when it takes longer. It never runs twice at a time.
type Check struct {
	Name string // "kafka", "database", "provider", "worker"
	Run  func(ctx context.Context) Verdict
}

// health runs the checks when they are asked for.
type health struct {
	probes []*probe
	clock  domain.Clock
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool // no check starts any more
	done   sync.WaitGroup
}

func newHealth(checks []Check, clock domain.Clock) *health {
	ctx, cancel := context.WithCancel(context.Background())
	h := &health{clock: clock, cancel: cancel}
	for _, check := range checks {
		h.probes = append(h.probes, &probe{check: check, health: h, ctx: ctx})
	}
	return h
}

// component is a check's latest verdict.
type component struct {
	name string
	Verdict
}

// look returns every component, in the order of the checks, and the worst status.
func (h *health) look(ctx context.Context) ([]component, Status) {
	components := make([]component, len(h.probes))
	var looking sync.WaitGroup
	for i, p := range h.probes {
		looking.Go(func() { components[i] = component{p.check.Name, p.look(ctx)} })
	}
	looking.Wait()
	overall := StatusOK
	for _, c := range components {
		overall = worse(overall, c.Status)
	}
	return components, overall
}

// close ends the checks and waits for them until ctx is done.
func (h *health) close(ctx context.Context) error {
	h.cancel()
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		h.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for health checks: %w", ctx.Err())
	}
}

// goes runs fn on a goroutine that close waits for; false once it is closed.
func (h *health) goes(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.done.Go(fn)
	return true
}

// probe is one check with its latest verdict.
type probe struct {
	check  Check
	health *health
	ctx    context.Context // the life of the server: its end ends the check

	mu   sync.Mutex
	last Verdict
	at   time.Time // when last was found; zero before
	run  *checkRun // in progress; nil when none
}

// checkRun is a check in progress.
type checkRun struct {
	bound context.Context // tells all who wait that its time is up
	ended chan struct{}
}

// look returns the latest verdict, of now or at most checkReuse ago.
func (p *probe) look(ctx context.Context) Verdict {
	p.mu.Lock()
	if !p.at.IsZero() && p.health.clock.Now().Sub(p.at) < checkReuse {
		defer p.mu.Unlock()
		return p.last
	}
	if p.run == nil && !p.start() {
		p.mu.Unlock()
		return Verdict{Status: StatusFail, Reason: "shutting down", Since: p.health.clock.Now()}
	}
	run := p.run
	p.mu.Unlock()

	select {
	case <-run.ended:
	case <-run.bound.Done():
	case <-ctx.Done(): // whoever asked is gone: this is for nobody
		return Verdict{Status: StatusFail, Reason: "not waited for", Since: p.health.clock.Now()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-run.ended:
	default: // still at it, and nobody knows what it would find
		p.found(Verdict{Status: StatusFail, Reason: fmt.Sprintf("no answer within %s", checkBound)})
	}
	return p.last
}

// start runs the check on a goroutine of its own: one that does not return must
// not keep the page from being shown. While it runs no second one is started.
func (p *probe) start() bool {
	bound, cancel := context.WithTimeout(p.ctx, checkBound)
	run := &checkRun{bound: bound, ended: make(chan struct{})}
	started := p.health.goes(func() {
		defer cancel()
		verdict := p.try(bound)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.found(verdict)
		p.at, p.run = p.health.clock.Now(), nil
		close(run.ended)
	})
	if !started {
		cancel()
		return false
	}
	p.run = run
	return true
}

func (p *probe) try(ctx context.Context) (v Verdict) {
	defer func() {
		if recover() != nil {
			v = Verdict{Status: StatusFail, Reason: "the check panicked"}
		}
	}()
	return p.check.Run(ctx)
}

// found keeps a verdict and dates it.
func (p *probe) found(v Verdict) {
	if v.Status != StatusOK && v.Status != StatusWarn {
		v.Status = StatusFail
	}
	v.Reason, v.More = v.reason(), nil
	if v.Since.IsZero() {
		v.Since = p.last.Since
		if v.Status != p.last.Status {
			v.Since = p.health.clock.Now()
		}
	}
	p.last = v
}
