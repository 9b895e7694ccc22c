package run

import (
	"context"
	"math/rand/v2"
)

func (r *runner) killer(unique int64) *killer {
	return &killer{
		moments: r.moments(killStream, killShare*float64(unique), r.options.Kills, 1),
		members: r.members, books: r.parts.books, began: r.began, kills: r.options.Kills,
		say: func(format string, args ...any) {
			r.progress.kills.Add(1)
			r.console.Say(format, args...)
		},
	}
}

func (r *runner) roller(f *feed, records, unique int64) *roller {
	share := rollShare
	if r.options.Backlog {
		share = backlogShare
	}
	return &roller{
		moments: r.moments(rollStream, share*float64(unique), r.options.Joins, rollSpread),
		members: r.members, watcher: r.parts.watcher, feed: f, began: r.began, rolls: r.options.Joins, records: records, backlog: r.options.Backlog,
		say: func(format string, args ...any) {
			r.progress.rolls.Add(1)
			r.console.Say(format, args...)
		},
	}
}

// moments are drawn by dice of their own from so many requests, in so many turns.
func (r *runner) moments(stream uint64, requests float64, turns int, spread float64) moments {
	return moments{
		posts: func() int64 { return r.parts.provider.Ledger().Posts },
		dice:  rand.New(rand.NewPCG(r.options.Source.Seed, stream)), //nolint:gosec // repeatable on purpose
		share: requests / float64(max(1, turns)), spread: spread,
	}
}

// end is closed when there is nothing left to disturb: an endless run is told to end, and of any other all is done.
func (r *runner) end() chan struct{} {
	if r.options.Source.Endless() {
		return r.stop
	}
	return make(chan struct{})
}

// awaitSpent closes end once all that was sent is finished: a kill that waits for one more request would wait for
// ever. Where nobody disturbs, nothing is waited for. It ends with ctx at the latest.
func (r *runner) awaitSpent(ctx context.Context, end chan struct{}) {
	if r.options.Source.Endless() || r.options.Kills+r.options.Joins == 0 {
		return
	}
	for ctx.Err() == nil {
		missing, err := r.parts.awaitDone(ctx)
		if err == nil && missing == "" {
			close(end)
			return
		}
		_ = sleep(ctx, finishPoll) // whoever can't be asked right now is asked again
	}
}
