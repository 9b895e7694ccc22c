package domain

import (
	"sync"
	"time"
)

// Bounds of the pace.
const (
	// leastWidth is how many callers a batch has at least: a fast provider is
	// served best by few, since idle ones and their connections cost too.
	leastWidth = 8
	// turn is how long the calls of a batch should take one after the other for
	// each of its callers.
	turn = 4 * time.Millisecond
	// widenAfter is how long the calls of a batch may take to begin before it gets
	// more callers.
	widenAfter = 5 * turn
	// firstLatency is what a provider is taken for before it has answered.
	firstLatency = 50 * time.Millisecond
	// memory is over how many answers the mean latency is taken.
	memory = 64
	// straggler is how many mean latencies a batch waits for its last answer.
	straggler = 3
)

// pace follows the provider's latency: how wide a batch calls, and how long it
// waits for its last answers. The zero value is ready.
type pace struct {
	mu   sync.Mutex
	mean time.Duration
}

// observe takes the latency of one request into the mean.
func (p *pace) observe(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean = firstLatency
	}
	p.mean += (latency - p.mean) / memory
}

func (p *pace) latency() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return firstLatency
	}
	return p.mean
}

// width returns how many callers n calls get.
func (p *pace) width(n int) int {
	wanted := int((time.Duration(n)*p.latency() + turn - 1) / turn)
	return min(max(wanted, leastWidth), n)
}

// patience returns how long a batch waits for its last answers: a few mean
// latencies, within least and most. Least 0 waits for all.
func (p *pace) patience(least, most time.Duration) time.Duration {
	if least == 0 {
		return 0
	}
	return min(max(straggler*p.latency(), least), most)
}
