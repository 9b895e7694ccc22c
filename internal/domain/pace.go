package domain

import (
	"sync"
	"time"
)

// Bounds of the pace.
const (
	// leastWidth is how many callers all batches together have at least, and
	// leastShare how many each of them has: a fast provider is served best by few,
	// since they wait for each other and for the processor otherwise.
	leastWidth = 16
	leastShare = 2
	// turn is how long the calls of a batch should take one after the other for
	// each of its callers, if no other batch were calling.
	turn = 12 * time.Millisecond
	// widenAfter is how long the calls of a batch may take to begin before it is
	// asked whether it needs more callers.
	widenAfter = 20 * time.Millisecond
	// widenFirst is widenAfter for a provider that has not answered yet: connections
	// have to be made, and nothing says that it is slow.
	widenFirst = 5 * widenAfter
	// firstLatency is what a provider is taken for before it has answered: a fast
	// one. A slow one is soon found out, while hundreds of connections made to a fast
	// one stay around unused.
	firstLatency = time.Millisecond / 2
	// memory is over how many answers the mean latency is taken.
	memory = 64
	// fall and rise are over how many faster and slower answers the latency of the
	// swift ones is taken.
	fall = 8
	rise = 1024
	// straggler is how many mean latencies a batch waits for its last answer.
	straggler = 3
)

// pace follows the provider's latency: how wide a batch calls, and how long it
// waits for its last answers. The zero value is ready.
type pace struct {
	mu   sync.Mutex
	mean time.Duration // of all answers, our own waits for the processor and connections included
	// swift is the mean of the faster ones: what the provider takes by itself. Width
	// goes by it, or our own load would look like a slow provider, and be answered
	// with more load.
	swift time.Duration
}

// observe takes the latency of one request into the mean.
func (p *pace) observe(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean = firstLatency
	}
	p.mean += (latency - p.mean) / memory
	if p.swift == 0 {
		p.swift = firstLatency
	}
	if latency < p.swift {
		p.swift += (latency - p.swift) / fall
	} else {
		p.swift += (latency - p.swift) / rise
	}
}

func (p *pace) latency() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return firstLatency
	}
	return p.mean
}

func (p *pace) swiftest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swift == 0 {
		return firstLatency
	}
	return p.swift
}

// hesitation returns how long the calls of a batch may take to begin.
func (p *pace) hesitation() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return widenFirst
	}
	return widenAfter
}

// width returns how many callers n calls get while so many batches are calling,
// this one included: all of them together get as many as are kept busy by calls
// that begin at the rate of one batch in a turn. More would only wait for each
// other, and leave connections behind.
func (p *pace) width(n, batches int) int {
	batches = max(batches, 1)
	each := turn * time.Duration(batches)
	wanted := int((time.Duration(n)*p.swiftest() + each - 1) / each)
	return min(max(wanted, leastWidth/batches, leastShare), n)
}

// wider returns how many more callers n calls get whose present ones have not
// begun them all in a while: as many again where no answer came, since the
// provider is slower than it was; else what its latency asks for by now.
func (p *pace) wider(n, batches, width int, answered bool) int {
	if !answered {
		return min(2*width, n) - width
	}
	return max(p.width(n, batches)-width, 0)
}

// patience returns how long a batch waits for its last answers: a few mean
// latencies, within least and most. Least 0 waits for all.
func (p *pace) patience(least, most time.Duration) time.Duration {
	if least == 0 {
		return 0
	}
	return min(max(straggler*p.latency(), least), most)
}
