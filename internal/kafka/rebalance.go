package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// onRebalance is called by the client inside Poll and Close. What it returns is
// discarded by the client, so a failure ends Run by itself. It always calls
// an incremental assign or unassign, for empty lists too: else the client does
// so itself, and blocks for ever on an error.
func (c *Consumer) onRebalance(_ *confluent.Consumer, event confluent.Event) error {
	switch e := event.(type) {
	case confluent.AssignedPartitions:
		c.heard()
		return c.assigned(e.Partitions)
	case confluent.RevokedPartitions:
		return c.revoked(e.Partitions)
	}
	return nil
}

func (c *Consumer) assigned(parts []confluent.TopicPartition) error {
	if c.cfg.Positions != nil && len(parts) > 0 && !c.isClosing() {
		c.metrics.rebalanced(c.root, "assigned", len(parts))
		c.logger.Info("partitions assigned", "partitions", numbers(parts))
		return c.restore(parts)
	}
	if err := c.client.IncrementalAssign(parts); err != nil {
		return c.fail(fmt.Errorf("assign %d partitions: %w", len(parts), err))
	}
	if len(parts) == 0 {
		return nil // half of a cooperative rebalance
	}
	if c.isClosing() {
		return c.client.Pause(parts) // the rebalance has to end, but nothing is taken any more
	}
	for _, part := range parts {
		c.begin(part.Partition, nil)
		c.await(part.Partition)
	}
	c.metrics.rebalanced(c.root, "assigned", len(parts))
	c.logger.Info("partitions assigned", "partitions", numbers(parts))
	return nil
}

// begin starts a lane, after the end of an earlier one of the same partition. Taken is the
// position that it has in the book; nil: none.
func (c *Consumer) begin(partition int32, taken *domain.Position) {
	l := newLane(c.root, c.crew, partition, c.former[partition])
	if taken != nil {
		l.keep(c.cfg.Positions, *taken)
	}
	c.mu.Lock()
	delete(c.former, partition)
	c.lanes[partition] = l
	c.mu.Unlock()
	c.committer.own(l)
	go l.run()
}

func (c *Consumer) revoked(parts []confluent.TopicPartition) error {
	if c.isClosing() {
		return c.client.IncrementalUnassign(c.assignedOf(parts))
	}
	domain.Reach(c.root, c.cfg.Faults, domain.InRevoke)
	lost := c.client.AssignmentLost()
	c.unpause(parts)
	lanes := c.take(numbers(parts))
	kind := "revoked"
	if lost {
		// Others may own them already: a commit would be refused or, worse, taken.
		kind = "lost"
		for _, l := range lanes {
			c.committer.disown(l)
			l.cancel()
		}
	} else {
		if left := drain(lanes, c.cfg.DrainTimeout); left > 0 {
			c.logger.Error("revoked partitions were not drained in time; their records run again elsewhere",
				"batches", left, "within", c.cfg.DrainTimeout+cancelGrace)
		}
		_ = c.release(lanes, 1) // logged; what is not committed is a duplicate elsewhere
	}
	if err := c.client.IncrementalUnassign(c.assignedOf(parts)); err != nil {
		return c.fail(fmt.Errorf("unassign %d partitions: %w", len(parts), err))
	}
	if len(parts) > 0 {
		c.metrics.rebalanced(c.root, kind, len(parts))
		c.logger.Info("partitions given back", "why", kind, "partitions", numbers(parts))
	}
	return nil
}

// take stops the lanes of these partitions and removes them from the poll loop's reach.
func (c *Consumer) take(partitions []int32) []*lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(partitions)
	var taken []*lane
	for _, partition := range partitions {
		delete(c.paused, partition)
		delete(c.awaited, partition)
		l := c.lanes[partition]
		if l == nil {
			continue
		}
		delete(c.lanes, partition)
		taken = append(taken, l)
		l.stop()
		if l.earlier != nil && !l.earlier.ended() {
			l = l.earlier // the stopped one has not begun anything and will not
		}
		c.former[partition] = l
	}
	return taken
}

func (c *Consumer) takeAll() []*lane {
	return c.take(slices.AppendSeq(slices.Collect(maps.Keys(c.lanes)), maps.Keys(c.owed)))
}

// release commits what the drained lanes made durable and ends their right to.
// It tries as often as told within flushTimeout: during a rebalance commits may fail.
func (c *Consumer) release(lanes []*lane, tries int) error {
	if len(lanes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.root, flushTimeout)
	defer cancel()
	err := c.committer.flush(ctx)
	for try := 1; err != nil && try < tries && ctx.Err() == nil; try++ {
		select {
		case <-time.After(commitRetry):
		case <-ctx.Done():
		}
		err = c.committer.flush(ctx)
	}
	for _, l := range lanes {
		c.committer.disown(l)
	}
	return err
}

// drain lets the batches in flight finish, and what they have overtaken; what is not done in time is cancelled
// and gets cancelGrace to give up. It returns how many batches still run then.
func drain(lanes []*lane, limit time.Duration) (left int) {
	for _, l := range lanes {
		l.stop()
	}
	if awaitLanes(lanes, limit) == 0 {
		return 0
	}
	for _, l := range lanes {
		l.cancel()
	}
	return awaitLanes(lanes, cancelGrace)
}

// awaitLanes waits for the lanes to end, at most limit, and returns how many batches
// of theirs have not.
func awaitLanes(lanes []*lane, limit time.Duration) (left int) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for i, l := range lanes {
		select {
		case <-l.done:
		case <-timer.C:
			for _, rest := range lanes[i:] {
				if !rest.ended() {
					left += max(1, rest.status().Batches)
				}
			}
			return left
		}
	}
	return 0
}

func (c *Consumer) isClosing() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.closing
}

func numbers(parts []confluent.TopicPartition) []int32 {
	partitions := make([]int32, len(parts))
	for i, part := range parts {
		partitions[i] = part.Partition
	}
	return partitions
}
