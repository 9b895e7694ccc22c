package torture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// resetTimeout bounds `billing offsets reset`, with all its tries.
	resetTimeout = time.Minute
	// farthestReset is the longest way back by time; from there on it is the beginning.
	farthestReset = 8 * time.Minute
)

// resetOffsets has everybody leave, the group go on somewhere before, and everybody
// come back.
func (w *world) resetOffsets(ctx context.Context) error {
	w.tasks.Wait()
	running := w.these(up)
	n := w.flight(ctx)
	for _, m := range running {
		m.leave(ctx)
	}
	if err := w.goBack(ctx); err != nil {
		return err
	}
	w.made(Hit{Kind: "offsets reset", InFlight: n})
	for _, m := range running {
		if err := m.start(ctx); err != nil {
			return err
		}
	}
	for _, m := range running {
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// goBack sets the group's offsets to a moment before, or to the beginning. A group that stood
// still may be farther behind than that: what it has not read must not be skipped, so that it
// goes back farther then, until it is back indeed.
func (w *world) goBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	back := between(w.dice, 2*time.Second, time.Minute)
	if w.dice.IntN(4) == 0 {
		back = farthestReset
	}
	for {
		to := "earliest"
		if back < farthestReset {
			to = time.Now().Add(-back).UTC().Format(time.RFC3339)
		}
		said, err := w.reset(ctx, to)
		switch {
		case err == nil:
			return nil
		case strings.Contains(said, "--skip-unread"):
			back *= 2
		// The group notices by and by that its members have left.
		case !strings.Contains(said, "live members") || !pause(ctx, w.family.session/4):
			return fmt.Errorf("reset of offsets to %s: %w", to, err)
		}
	}
}

// reset runs `billing offsets reset`, and returns what it said.
func (w *world) reset(ctx context.Context, to string) (said string, err error) {
	return process.Run(ctx, process.Spec{
		Path: w.options.Billing, Args: []string{"offsets", "reset", "--to", to, "--yes"},
		Dir: w.dir, Env: append(passed(w.options.Environ), w.env...),
	})
}
