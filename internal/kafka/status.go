package kafka

import (
	"cmp"
	"slices"
	"time"
)

// PausedQueueFull is why a partition is paused: its queue is at a bound.
const PausedQueueFull = "queue full"

// State is what a lane is doing.
type State string

// The states of a lane.
const (
	Idle     State = "idle"     // nothing waits
	Waiting  State = "waiting"  // for a free transaction, or for intake to be admitted
	Billing  State = "billing"  // batches are in flight
	Retrying State = "retrying" // the last batch failed; pausing before the next one
	// Restoring: the partition is ours, and its position in the book is not known yet.
	Restoring State = "restoring"
)

// Status is what the consumer is doing at one moment. It is a copy.
type Status struct {
	Topic   string
	GroupID string
	// Running is set while Run polls: not before it, and not once it drains or has
	// ended. When it is no longer set, the only batches that begin are of records that others
	// have overtaken.
	Running bool
	// LastPoll is when the poll loop was last seen; zero before the first poll.
	LastPoll time.Time
	// BrokerError is the latest trouble with the brokers, empty once they were heard
	// again; BrokerErrorSince is when it began.
	BrokerError      string
	BrokerErrorSince time.Time
	// Fatal is the error that ended the client for good.
	Fatal string
	// Operator is the pause that an operator asked for; nil: none.
	Operator *Pause
	// Leaving is how many lanes still run though their partitions are gone: they drain,
	// or their batches have not given up in time.
	Leaving int
	// Partitions are those assigned to this member, in order.
	Partitions []PartitionStatus
}

// PartitionStatus is the state of one assigned partition. Offsets are -1 while unknown.
type PartitionStatus struct {
	Partition   int32
	State       State
	Queued      int // records that wait or are in flight
	QueuedBytes int // of keys, values and headers of these
	Batches     int // in flight
	InFlight    int // records of all batches in flight
	// Done is the next offset to be committed: everything below it is durable.
	Done int64
	// Committed is the offset last committed in this assignment.
	Committed int64
	// HighWatermark is the end of the partition as last heard from its broker.
	HighWatermark int64
	// Lag is HighWatermark less Done, not below 0; -1 while either is unknown.
	Lag int64
	// Paused says why nothing is fetched, or nothing begun; empty when it is.
	Paused string
	// Failures counts how often batches failed, each after the pause for the one before;
	// LastError says why. Both are empty again after a success.
	Failures  int
	LastError string
}

// Status returns what the consumer is doing now. It asks nobody: it is cheap, and safe to
// call at any time from any goroutine, after Run too.
func (c *Consumer) Status() Status {
	c.mu.RLock()
	now := Status{
		Topic: c.cfg.Topic, GroupID: c.cfg.GroupID, Running: c.polling, LastPoll: c.lastPoll,
		Operator: c.crew.brake.pulled(),
	}
	if t := c.trouble.Load(); t != nil {
		now.BrokerError, now.BrokerErrorSince = t.err.Error(), t.since
	}
	if c.fatal != nil {
		now.Fatal = c.fatal.Error()
	}
	now.Partitions = c.owing()
	lanes := make([]*lane, 0, len(c.lanes))
	paused := make(map[int32]bool, len(c.paused))
	for partition, l := range c.lanes {
		lanes = append(lanes, l)
		paused[partition] = c.paused[partition]
	}
	for _, l := range c.former {
		if !l.ended() {
			now.Leaving++
		}
	}
	c.mu.RUnlock()

	for _, l := range lanes {
		p := l.status()
		p.Committed = c.committer.committedOffset(l.partition)
		switch {
		case now.Operator != nil:
			p.Paused = PausedByOperator
		case paused[l.partition]:
			p.Paused = PausedQueueFull
		}
		now.Partitions = append(now.Partitions, p)
	}
	slices.SortFunc(now.Partitions, func(a, b PartitionStatus) int { return cmp.Compare(a.Partition, b.Partition) })
	return now
}

func (l *lane) status() PartitionStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := &l.shown
	p := PartitionStatus{
		Partition: l.partition, State: l.state(),
		Queued: l.load.records - now.durable, QueuedBytes: l.load.bytes,
		Batches: now.batches, InFlight: now.inFlight,
		Done: now.position, HighWatermark: now.high, Lag: unknown,
		Failures: now.failures, LastError: now.lastError,
	}
	if now.position >= 0 && now.high >= 0 {
		p.Lag = max(0, now.high-now.position)
	}
	return p
}

// state sums up what the lane does. The lock is held.
func (l *lane) state() State {
	switch {
	case l.shown.pausing:
		return Retrying
	case l.shown.batches > 0:
		return Billing
	case l.load.records > 0:
		return Waiting
	default:
		return Idle
	}
}

// ended reports whether the lane's goroutine is gone.
func (l *lane) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
