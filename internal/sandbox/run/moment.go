package run

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// momentPoll is how often it is looked how far the work is.
	momentPoll = time.Millisecond
	// momentJitter is the longest wait from a turn to what happens then: it may fall into a commit as well as into a call.
	momentJitter = 40 * time.Millisecond
	// In an endless run a moment comes this long after the last one, at least and at most.
	shortestPause, longestPause = 5 * time.Second, 15 * time.Second
)

// moments draws when something happens, by how far the work is.
type moments struct {
	posts  func() int64 // how many requests the provider has seen
	dice   *rand.Rand
	share  float64 // requests from one turn to the next; 0 in an endless run
	spread float64 // the part of its share, from its beginning, that a moment is drawn from
}

// await waits for the n-th turn: a request number drawn from its share of the
// work or, where the work has no end, a pause. Either way work must be going on:
// at least one request more than last. It returns false when ctx ends or stop is closed.
func (m *moments) await(ctx context.Context, stop <-chan struct{}, n int, last int64) bool {
	due := int64(0)
	notBefore := time.Now()
	if m.share > 0 {
		due = int64(m.share * (float64(n) + m.spread*m.dice.Float64()))
	} else {
		notBefore = notBefore.Add(shortestPause + time.Duration(m.dice.Int64N(int64(longestPause-shortestPause))))
	}
	tick := time.NewTicker(momentPoll)
	defer tick.Stop()
	for {
		if posts := m.posts(); posts >= due && posts > last && !time.Now().Before(notBefore) {
			return sleep(ctx, time.Duration(m.dice.Int64N(int64(momentJitter)))) == nil
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
