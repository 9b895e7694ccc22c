package kafka

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

const (
	// restoreTimeout bounds one question to the book or the brokers where a partition goes on.
	restoreTimeout = 5 * time.Second
	// fencedPause is how long a member waits before it takes a partition again that was taken
	// from it, and that the group says is its own still: as a rule it hears by then that it is not.
	fencedPause = 2 * time.Second
)

// restoration is a partition that the group has given us, and whose position in the book is
// not known yet. The client does not fetch it; the group does not wait for it.
type restoration struct {
	partition int32
	cancel    context.CancelFunc

	// The result, once the restoration has been sent on.
	taken domain.Position
	at    confluent.TopicPartition // where to begin

	failures  int // guarded by Consumer.mu
	lastError string
}

// restore begins the partitions at the positions that the book holds. It does not wait
// for the book: in the callback that would cost the membership when the database is away.
func (c *Consumer) restore(parts []confluent.TopicPartition) error {
	if err := c.client.IncrementalAssign(nil); err != nil {
		return c.fail(fmt.Errorf("assign no partitions yet: %w", err))
	}
	for _, part := range parts {
		c.owe(part.Partition, 0)
	}
	return nil
}

// owe finds out where a partition goes on, and has the poll loop begin it there.
func (c *Consumer) owe(partition int32, pause time.Duration) {
	ctx, cancel := context.WithCancel(c.root)
	r := &restoration{partition: partition, cancel: cancel}
	c.withheld[partition] = true
	c.mu.Lock()
	c.owed[partition] = r
	former := c.former[partition]
	c.mu.Unlock()
	c.restoring.Go(func() { // ends with its context, at the latest when Run does
		defer cancel()
		if !rested(ctx, pause) {
			return
		}
		if former != nil { // its last write would be in vain else
			select {
			case <-former.done:
			case <-ctx.Done():
				return
			}
		}
		if err := c.find(ctx, r); err != nil {
			return // given back meanwhile
		}
		select {
		case c.restored <- r:
		case <-ctx.Done():
		}
	})
}

// find takes the partition in the book, again and again until that succeeds or ctx ends.
func (c *Consumer) find(ctx context.Context, r *restoration) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, 3*restoreTimeout)
		defer cancel()
		taken, err := c.cfg.Positions.Take(ctx, c.cfg.GroupID, c.cfg.Topic, r.partition)
		if err != nil {
			return struct{}{}, err
		}
		r.taken, r.at, err = c.placeIn(ctx, taken)
		return struct{}{}, err
	}, backoff.WithBackOff(newPauses()), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		c.mu.Lock()
		r.failures++
		r.lastError = err.Error()
		failures := r.failures
		c.mu.Unlock()
		if failures == 1 || failures%10 == 0 {
			c.logger.Warn("a partition waits for its position", "partition", r.partition, "failures", failures, "error", err)
		}
	}))
	return err
}

// placeIn tells where in the log a partition goes on. Without a position in the book that
// is what the group has committed in Kafka, and without such the earliest record. A position
// outside of the log is told, and set to the earliest record: nothing that is still there is skipped.
func (c *Consumer) placeIn(ctx context.Context, taken domain.Position) (domain.Position, confluent.TopicPartition, error) {
	at := c.parts(taken.Partition)[0]
	at.Offset = confluent.OffsetInvalid
	if taken.Next == domain.NoOffset {
		return taken, at, nil
	}
	first, end, err := c.span(ctx, taken.Partition)
	if err != nil {
		return taken, at, err
	}
	if taken.Next < first || taken.Next > end {
		c.logger.Error("the position lies outside of the log: records were removed before they were read, or the log was cut back; "+
			"going on at its first record", "partition", taken.Partition, "position", taken.Next, "first", first, "end", end)
		taken.Next, taken.LeaderEpoch = first, domain.NoLeaderEpoch
		if err := c.cfg.Positions.Rewind(ctx, taken); err != nil {
			return taken, at, err
		}
	}
	at.Offset = confluent.Offset(taken.Next)
	if taken.LeaderEpoch != domain.NoLeaderEpoch {
		at.LeaderEpoch = &taken.LeaderEpoch
	}
	return taken, at, nil
}

// span asks for the first offset and the end of a partition, open transactions included.
func (c *Consumer) span(ctx context.Context, partition int32) (first, end int64, err error) {
	admin, err := confluent.NewAdminClientFromConsumer(c.client)
	if err != nil {
		return 0, 0, fmt.Errorf("kafka admin client: %w", err)
	}
	defer admin.Close()
	for _, ask := range []struct {
		spec confluent.OffsetSpec
		into *int64
	}{{confluent.EarliestOffsetSpec, &first}, {confluent.LatestOffsetSpec, &end}} {
		found, err := listOffsets(ctx, admin, c.cfg.Topic, []int32{partition}, ask.spec, confluent.IsolationLevelReadUncommitted)
		if err != nil {
			return 0, 0, err
		}
		*ask.into = found[partition]
	}
	return first, end, nil
}

// beginRestored begins the partitions whose position is known by now.
func (c *Consumer) beginRestored() {
	for {
		select {
		case r := <-c.restored:
			c.mu.Lock()
			current := c.owed[r.partition] == r
			if current {
				delete(c.owed, r.partition)
			}
			c.mu.Unlock()
			if current {
				c.beginAt(r)
			}
		default:
			return
		}
	}
}

func (c *Consumer) beginAt(r *restoration) {
	if err := c.client.IncrementalAssign([]confluent.TopicPartition{r.at}); err != nil {
		_ = c.fail(fmt.Errorf("assign partition %d at %s: %w", r.partition, r.at.Offset, err))
		return
	}
	delete(c.withheld, r.partition)
	c.begin(r.partition, &r.taken)
	c.await(r.partition)
	c.logger.Info("partition begins", "partition", r.partition, "at", r.at.Offset.String(), "epoch", r.taken.Epoch)
}

// retake gives partitions another try whose lanes were fenced though the group has not
// taken them from us: who fenced them may be gone, and nobody else would read them.
func (c *Consumer) retake() {
	if c.cfg.Positions == nil {
		return
	}
	var fenced []int32
	for partition, l := range c.lanes {
		if l.isFenced() && l.ended() {
			fenced = append(fenced, partition)
		}
	}
	if len(fenced) == 0 || c.client.AssignmentLost() {
		return // the revocation is on its way
	}
	parts := c.parts(fenced...)
	c.unpause(parts)
	for _, l := range c.take(fenced) {
		c.committer.disown(l)
	}
	if err := c.client.IncrementalUnassign(parts); err != nil {
		_ = c.fail(fmt.Errorf("unassign %d fenced partitions: %w", len(parts), err))
		return
	}
	for _, partition := range fenced {
		c.owe(partition, fencedPause+rand.N(fencedPause)) //nolint:gosec // jitter, not a secret
	}
}

// forget drops what is owed to partitions that leave. To be called with the lock.
func (c *Consumer) forget(partitions []int32) {
	for _, partition := range partitions {
		if r := c.owed[partition]; r != nil {
			r.cancel()
			delete(c.owed, partition)
		}
	}
}

// assignedOf returns those of the partitions that the client fetches, and forgets about the
// others: what was never assigned cannot be unassigned.
func (c *Consumer) assignedOf(parts []confluent.TopicPartition) []confluent.TopicPartition {
	if len(c.withheld) == 0 {
		return parts
	}
	assigned := make([]confluent.TopicPartition, 0, len(parts))
	for _, part := range parts {
		if !c.withheld[part.Partition] {
			assigned = append(assigned, part)
		}
		delete(c.withheld, part.Partition)
	}
	return assigned
}

// owing returns the state of the partitions whose position is not known yet. The lock is held.
func (c *Consumer) owing() []PartitionStatus {
	owing := make([]PartitionStatus, 0, len(c.owed))
	for _, partition := range slices.Sorted(maps.Keys(c.owed)) {
		r := c.owed[partition]
		owing = append(owing, PartitionStatus{
			Partition: partition, State: Restoring, Done: unknown, Committed: unknown, HighWatermark: unknown, Lag: unknown,
			Failures: r.failures, LastError: r.lastError,
		})
	}
	return owing
}

// rested waits for d and reports whether ctx is still live.
func rested(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
