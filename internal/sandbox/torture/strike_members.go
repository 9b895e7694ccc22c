package torture

import (
	"context"
	"syscall"
	"time"
)

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
