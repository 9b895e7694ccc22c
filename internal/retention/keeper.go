package retention

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"example.com/billing/internal/domain"
)

// Parts are what a [Keeper] works with.
type Parts struct {
	Place  Place
	Table  Table
	Reader Reader
	Chores []Chore
	Meters Meters // nil: nothing is measured
	Clock  domain.Clock
	Logger *slog.Logger
}

// Keeper does retention: of all instances one, a turn at a time. Create it by New and
// run it once, or ask it for single turns by Once; not both.
type Keeper struct {
	cfg     Config
	parts   Parts
	metrics *metrics
	ready   chan struct{} // closed once new rows have their range

	// What follows is that of Run's goroutine.
	begun    time.Time     // when Run was
	due      time.Time     // when the next turn is
	dropAt   time.Time     // before then no drop is tried
	dropRest time.Duration // the latest pause between tries
	told     time.Time     // when trouble was last logged

	mu     sync.Mutex
	status Status
}

// Status is what a keeper shows of itself.
type Status struct {
	Leading bool
	Report  domain.RetentionReport // of its own latest turn
}

// New returns a keeper that has asked nobody yet.
func New(c Config, p Parts) (*Keeper, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	k := &Keeper{cfg: c, parts: p, ready: make(chan struct{})}
	var err error
	k.metrics, err = newMetrics(p.Meters, k.Status)
	return k, err
}

// Status returns what the keeper shows of itself now.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

func (k *Keeper) note(change func(*Status)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.status)
}

// Close stops the measuring.
func (k *Keeper) Close() error { return k.metrics.close() }

// Ready is closed once there is a range for the rows of now, of whatever instance, or a
// turn of Run has tried, or ten seconds have brought none: who waits for it before it writes rows spares itself their being
// moved.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

func (k *Keeper) isReady() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

// readyPoll is how often an instance that does not lead looks for the first ranges, and
// readyFor for how long: where too much lies in the default partition that of now is never
// made, and whoever waits for it goes on without.
const (
	readyPoll = 50 * time.Millisecond
	readyFor  = 10 * time.Second
)

// hasty reports whether the first ranges are still worth asking for often.
func (k *Keeper) hasty() bool { return k.parts.Clock.Now().Sub(k.begun) < readyFor }

// look finds out whether another instance has made the range of now.
func (k *Keeper) look(ctx context.Context) error {
	leaves, err := k.parts.Table.Leaves(ctx)
	if err != nil {
		return err
	}
	now := k.parts.Clock.Now()
	held := func(l domain.Leaf) bool { return !l.Default && l.Span.Contains(now) }
	if k.cfg.Mode == domain.RetainByDelete || slices.ContainsFunc(leaves, held) || !k.hasty() {
		close(k.ready)
	}
	return nil
}

// Run leads where nobody else does, and makes a turn whenever one is due, until ctx is
// done; then it gives its place up. No trouble ends it.
func (k *Keeper) Run(ctx context.Context) {
	k.begun = k.parts.Clock.Now()
	for rest := time.Duration(0); pauseFor(ctx, rest); rest = k.rest() {
		if err := k.step(ctx); err != nil {
			k.failed(ctx, err)
		}
	}
	if err := k.parts.Place.Resign(); err != nil {
		k.parts.Logger.WarnContext(ctx, "retention: end", "error", err)
	}
	k.note(func(s *Status) { s.Leading = false })
}

func (k *Keeper) rest() time.Duration {
	if !k.isReady() && k.hasty() {
		return min(readyPoll, k.cfg.Poll)
	}
	return around(k.cfg.Poll)
}

// step asks for the lead, and makes a turn when it is due.
func (k *Keeper) step(ctx context.Context) error {
	led, err := k.lead(ctx)
	if err != nil || !led {
		k.due = time.Time{} // whoever leads begins with a turn
		if err == nil && !k.isReady() {
			err = k.look(ctx)
		}
		return err
	}
	now := k.parts.Clock.Now()
	if now.Before(k.due) {
		return nil
	}
	begun, err := k.begin(ctx)
	if err != nil || !begun {
		return err // somebody makes one by hand; ours comes after it
	}
	k.due = now.Add(around(k.cfg.Every))
	report, err := k.turn(ctx, now, ByHand{})
	k.warn(ctx, &report)
	k.note(func(s *Status) { s.Report = report })
	if !k.isReady() {
		close(k.ready)
	}
	return errors.Join(err, k.end(ctx))
}

func (k *Keeper) lead(ctx context.Context) (led bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	led, err = k.parts.Place.Lead(ctx)
	if led != k.Status().Leading {
		k.parts.Logger.InfoContext(ctx, "retention", "leading", led)
	}
	k.note(func(s *Status) { s.Leading = led })
	return led, err
}

func (k *Keeper) begin(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return k.parts.Place.Begin(ctx)
}

func (k *Keeper) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return k.parts.Place.End(ctx)
}

// complainEvery bounds how often lasting trouble is logged.
const complainEvery = time.Minute

func (k *Keeper) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // we are asked to stop
	}
	k.metrics.failed(ctx)
	if now := k.parts.Clock.Now(); now.Sub(k.told) >= complainEvery {
		k.told = now
		k.parts.Logger.WarnContext(ctx, "retention: it is tried again", "error", err)
	}
}

// around is a time like d, so that instances do not march in step.
func around(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1) //nolint:gosec // nothing secret
}

// pauseFor waits for d and reports whether ctx is still live.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
