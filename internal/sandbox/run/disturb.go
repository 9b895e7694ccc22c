package run

import "math/rand/v2"

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
	return &roller{
		moments: r.moments(rollStream, rollShare*float64(unique), r.options.Joins, rollSpread),
		members: r.members, watcher: r.parts.watcher, feed: f, began: r.began, rolls: r.options.Joins, records: records,
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
