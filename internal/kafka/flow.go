package kafka

import (
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const (
	// firstProd is after how long without a sign of life from a partition that should
	// be fetched it is resumed again; the wait doubles up to lastProd.
	firstProd = 2 * time.Second
	lastProd  = 30 * time.Second
)

// awaited is a partition from which a record or its end has to come soon.
type awaited struct {
	due  time.Time     // when to resume it again
	wait time.Duration // how long that was
}

// pause stops the fetching from a partition whose lane is full. It may be called
// while the partition counts as paused: a record that still came shows that it is not. The
// client drops a pause that a step of a rebalance has overtaken.
func (c *Consumer) pause(partition int32) {
	if err := c.client.Pause(c.parts(partition)); err != nil {
		// Nothing bounds the queue now: better to start anew than to grow.
		_ = c.fail(err)
		return
	}
	delete(c.awaited, partition)
	c.mu.Lock()
	c.paused[partition] = true
	c.mu.Unlock()
}

// resume starts the fetching again. On an error the partition counts as paused
// still, and the next round of the poll loop tries again.
func (c *Consumer) resume(partition int32) {
	if err := c.client.Resume(c.parts(partition)); err != nil {
		c.brokerTrouble(err)
		return
	}
	c.mu.Lock()
	delete(c.paused, partition)
	c.mu.Unlock()
	c.await(partition)
	c.wakeFetcher()
}

// unpause resumes what is paused of partitions that are about to leave: in this client a
// pause outlives the assignment, and to resume them when they come back is too late. That
// races with the client's own start of fetching, and a resume that is overtaken by
// it is dropped (measured with 2.13: 1 of 200 under load stayed silent for ever).
func (c *Consumer) unpause(parts []confluent.TopicPartition) {
	for _, part := range parts {
		if c.paused[part.Partition] {
			if err := c.client.Resume(c.parts(part.Partition)); err != nil {
				c.brokerTrouble(err) // should it come back, prod sees to it
			}
		}
	}
}

// await expects a sign of life from the partition.
func (c *Consumer) await(partition int32) {
	c.awaited[partition] = awaited{due: c.clock.Now().Add(firstProd), wait: firstProd}
}

// prod resumes again what should have been heard of. Whatever made the client lose
// a resume, no partition stays silent for it; one that is not paused does not mind.
func (c *Consumer) prod(now time.Time) {
	for partition, expected := range c.awaited {
		if now.Before(expected.due) {
			continue
		}
		wait := min(2*expected.wait, lastProd)
		c.awaited[partition] = awaited{due: now.Add(wait), wait: wait}
		c.logger.Warn("nothing heard of a partition; resuming it again",
			"partition", partition, "for", expected.wait, "next", wait)
		if err := c.client.Resume(c.parts(partition)); err != nil {
			c.brokerTrouble(err)
			continue
		}
		c.wakeFetcher()
	}
}
