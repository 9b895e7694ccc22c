package kafka

import (
	"context"
	"sync"
	"time"
)

// PausedByOperator is why a partition is paused: somebody has stopped intake.
const PausedByOperator = "operator"

// Pause is a stop of intake that somebody asked for.
type Pause struct {
	By     string
	Reason string
	Since  time.Time
}

// brake lets an operator stop the lanes from beginning batches. It belongs to the
// consumer and not to a partition, so that a rebalance changes nothing about it:
// what is assigned meanwhile waits too. Fetching goes on until the queues are full;
// that pause is the poll loop's own, and releasing the brake has no part in it.
type brake struct {
	mu       sync.Mutex
	pause    *Pause        // nil: released
	released chan struct{} // closed when it is released; nil while it is
}

// pull stops intake. Pulled once more, it keeps since when.
func (b *brake) pull(p Pause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause != nil {
		p.Since = b.pause.Since
	} else {
		b.released = make(chan struct{})
	}
	b.pause = &p
}

// release lets intake go on, and reports whether it was stopped.
func (b *brake) release() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == nil {
		return false
	}
	close(b.released)
	b.pause, b.released = nil, nil
	return true
}

// pulled returns the pause in force; nil when there is none.
func (b *brake) pulled() *Pause {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == nil {
		return nil
	}
	p := *b.pause
	return &p
}

// wait returns once the brake is released, or with ctx's error.
func (b *brake) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		released := b.released
		b.mu.Unlock()
		if released == nil {
			return ctx.Err()
		}
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// seekUnbraked is admit once no operator has paused intake. It holds no slot while
// it waits for that: a lane that stops may need one.
func (l *lane) seekUnbraked(ctx context.Context, hasSlot bool) admission {
	for {
		if l.brake.pulled() != nil && hasSlot {
			<-l.slots
			hasSlot = false
		}
		if err := l.brake.wait(ctx); err != nil {
			if hasSlot {
				<-l.slots
			}
			return admission{err: err}
		}
		brought := l.admit(ctx, hasSlot)
		if brought.err != nil || l.brake.pulled() == nil {
			return brought
		}
		hasSlot = true // paused meanwhile: from the beginning
	}
}

// Pause stops intake: the batches in flight end, and none begins until Resume,
// whatever is assigned meanwhile. A restart of the process forgets it.
func (c *Consumer) Pause(by, reason string) {
	c.crew.brake.pull(Pause{By: by, Reason: reason, Since: c.clock.Now()})
	c.logger.Warn("intake is paused by an operator", "by", by, "reason", reason)
}

// Resume lets intake go on, if somebody has paused it. What flow control has
// paused stays so until there is room.
func (c *Consumer) Resume(by string) {
	if c.crew.brake.release() {
		c.logger.Warn("intake is resumed by an operator", "by", by)
	}
}
