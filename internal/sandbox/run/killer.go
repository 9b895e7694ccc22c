package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// killPoll is how often the killer looks how far the work is.
	killPoll = time.Millisecond
	// killShare is the part of the work within which kills fall, so that there is work left to be disturbed by the last.
	killShare = 0.8
	// killJitter is the longest wait from a kill's turn to the kill: it may then fall into a commit as well as into a call.
	killJitter = 40 * time.Millisecond
	// In an endless run a kill comes this long after the last one, at least and at most.
	shortestPause, longestPause = 5 * time.Second, 15 * time.Second
	// killStream separates the killer's dice from the orders'.
	killStream = 0x6b696c6c
)

// killer kills instances while they work.
type killer struct {
	instances []*instance
	books     *books
	posts     func() int64 // how many requests the provider has seen
	dice      *rand.Rand
	began     time.Time
	kills     int
	unique    int64 // how many requests are expected at least; 0 in an endless run
	say       func(string, ...any)
}

// run kills as often as asked and returns what it did. It ends with ctx or, in an endless run, when stop is closed.
func (k *killer) run(ctx context.Context, stop <-chan struct{}) ([]Kill, error) {
	done := make([]Kill, 0, k.kills)
	last := int64(0)
	for n := range k.kills {
		if !k.await(ctx, stop, n, last) {
			return done, context.Cause(ctx)
		}
		kill, err := k.strike(ctx, k.instances[k.dice.IntN(len(k.instances))])
		if err != nil {
			return done, fmt.Errorf("kill %d: %w", n+1, err)
		}
		done = append(done, kill)
		last = k.posts()
	}
	return done, nil
}

// await waits for the turn of the n-th kill: a request number drawn from its share of the
// work or, where the work has no end, a pause. Either way work must be going on:
// at least one request since the kill before.
func (k *killer) await(ctx context.Context, stop <-chan struct{}, n int, last int64) bool {
	due := int64(0)
	notBefore := time.Now()
	if k.unique > 0 {
		share := killShare * float64(k.unique) / float64(k.kills)
		due = int64(share * (float64(n) + k.dice.Float64()))
	} else {
		notBefore = notBefore.Add(shortestPause + time.Duration(k.dice.Int64N(int64(longestPause-shortestPause))))
	}
	tick := time.NewTicker(killPoll)
	defer tick.Stop()
	for {
		if posts := k.posts(); posts >= due && posts > last && !time.Now().Before(notBefore) {
			return sleep(ctx, time.Duration(k.dice.Int64N(int64(killJitter)))) == nil
		}
		select {
		case <-tick.C:
		case <-stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// strike kills an instance, looks what it left unfinished before anybody can take it up, and starts it again.
func (k *killer) strike(ctx context.Context, i *instance) (Kill, error) {
	kill := Kill{Instance: i.number, At: time.Since(k.began), Posts: k.posts()}
	kill.AtSeconds = kill.At.Round(time.Millisecond).Seconds()
	if err := i.kill(); err != nil {
		return kill, err
	}
	var err error
	if kill.Unfinished, err = k.books.unfinished(ctx); err != nil {
		return kill, err
	}
	kill.InFlight = len(kill.Unfinished)
	k.say("kill -9 of instance %d at %.1f s, after %s POSTs: %s charges unfinished", kill.Instance, kill.AtSeconds,
		number(kill.Posts), number(int64(kill.InFlight)))
	if err := i.start(); err != nil {
		return kill, err
	}
	return kill, i.awaitReady(ctx)
}
