package torture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

// resetTimeout bounds `billing offsets reset`.
const resetTimeout = time.Minute

// proceed continues a stopped victim.
func (m *member) proceed() error {
	proc := m.doom(false)
	if err := proc.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	m.set(up)
	return nil
}

// killAny kills a member at a moment that is nobody's.
func (w *world) killAny(ctx context.Context) error {
	m, err := w.oneUp(ctx)
	if err != nil {
		return err
	}
	w.flight(ctx)
	pause(ctx, between(w.dice, 0, 40*time.Millisecond))
	end := w.record.open("kill")
	if err := m.kill(); err != nil {
		return err
	}
	m.set(down)
	n, _ := w.calling(ctx)
	end(0)
	w.made(Hit{Kind: "kill", Point: "any", InFlight: n})
	w.again(ctx, m)
	return nil
}

// stopAny stops a member at a moment that is nobody's.
func (w *world) stopAny(ctx context.Context) error {
	w.tasks.Wait()
	m, err := w.oneUp(ctx)
	if err != nil {
		return err
	}
	w.flight(ctx)
	end := w.record.open("stop")
	m.set(frozen)
	if err := m.doom(false).Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	n, _ := w.calling(ctx)
	w.made(Hit{Kind: "stop", Point: "any", InFlight: n})
	w.thaw(ctx, m, w.frost(), end)
	return nil
}

// leaveOne has a member leave in order, if another one stays.
func (w *world) leaveOne(ctx context.Context) error {
	w.tasks.Wait()
	running := w.these(up)
	if len(running) < 2 {
		return w.joinOne(ctx)
	}
	m := running[w.dice.IntN(len(running))]
	if err := m.awaitReady(ctx); err != nil {
		return err
	}
	n := w.flight(ctx)
	m.leave(ctx)
	w.made(Hit{Kind: "leave", InFlight: n})
	return nil
}

// joinOne has a member join, where there is a place.
func (w *world) joinOne(ctx context.Context) error {
	w.tasks.Wait()
	out := w.these(down)
	if len(out) == 0 {
		return w.leaveOne(ctx)
	}
	m := out[w.dice.IntN(len(out))]
	n := w.flight(ctx)
	if err := m.start(ctx); err != nil {
		return err
	}
	w.made(Hit{Kind: "join", InFlight: n})
	return m.awaitReady(ctx)
}

// replaceOne has a member leave, and come back while the group is still settling.
func (w *world) replaceOne(ctx context.Context) error {
	w.tasks.Wait()
	m, err := w.oneUp(ctx)
	if err != nil {
		return err
	}
	n := w.flight(ctx)
	m.leave(ctx)
	w.made(Hit{Kind: "replace", InFlight: n})
	if err := m.start(ctx); err != nil {
		return err
	}
	return m.awaitReady(ctx)
}

// resetOffsets has everybody leave, the group go on somewhere before, and everybody
// come back.
func (w *world) resetOffsets(ctx context.Context) error {
	w.tasks.Wait()
	running := w.these(up)
	n := w.flight(ctx)
	for _, m := range running {
		m.leave(ctx)
	}
	to := "earliest"
	if w.dice.IntN(4) > 0 {
		to = time.Now().Add(-between(w.dice, 2*time.Second, time.Minute)).UTC().Format(time.RFC3339)
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	// The group notices by and by that its members have left.
	for {
		said, err := process.Run(ctx, process.Spec{
			Path: w.options.Billing, Args: []string{"offsets", "reset", "--to", to, "--yes"},
			Dir: w.dir, Env: append(passed(w.options.Environ), w.env...),
		})
		if err == nil {
			break
		}
		if !strings.Contains(said, "live members") || !pause(ctx, w.family.session/4) {
			return fmt.Errorf("reset of offsets to %s: %w", to, err)
		}
	}
	w.made(Hit{Kind: "offsets reset", InFlight: n})
	for _, m := range running {
		if err := m.start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	for _, m := range slices.Clone(running) {
		if err := m.awaitReady(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}
