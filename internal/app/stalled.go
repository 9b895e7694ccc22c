package app

import (
	"context"
	"time"
)

// stalledLook is the pause between two looks for sessions that stand still.
const stalledLook = 2 * time.Second

// startStalled ends sessions that wait for a client that stands still, whichever instance that is, until ctx
// ends; the returned function waits for the end.
func (a *App) startStalled(ctx context.Context) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.endStalled(ctx)
	}()
	return func() { <-ended }
}

func (a *App) endStalled(ctx context.Context) {
	tick := time.NewTicker(stalledLook)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		look, cancel := context.WithTimeout(ctx, sideTimeout)
		n, err := a.store.EndStalled(look)
		cancel()
		switch {
		case err != nil && !failing && ctx.Err() == nil: // once: it goes on for as long as the database is away
			a.log.WarnContext(ctx, "sessions that stand still cannot be looked for", "error", err)
		case n > 0:
			a.log.WarnContext(ctx, "ended sessions whose client stood still in the midst of a COPY: it is stopped, or cut off", "sessions", n)
		}
		failing = err != nil
	}
}
