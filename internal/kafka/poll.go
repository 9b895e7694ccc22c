package kafka

import (
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const (
	// pollWait bounds one poll, and thereby how late a shutdown is noticed.
	pollWait = 100 * time.Millisecond
	// pausedPollWait is the wait while something is paused, or not begun yet: only the loop resumes.
	pausedPollWait = 10 * time.Millisecond
	// tendEvery is how often high watermarks are read from the client's cache, and
	// partitions looked at that should have been heard of.
	tendEvery = 250 * time.Millisecond
)

// handle takes what one poll returned.
func (c *Consumer) handle(event confluent.Event) {
	switch e := event.(type) {
	case *confluent.Message:
		if e.TopicPartition.Error != nil {
			c.brokerTrouble(e.TopicPartition.Error)
			return
		}
		c.accept(e)
	case confluent.PartitionEOF:
		c.heard()
		delete(c.awaited, e.Partition)
		// While paused, records that were fetched ahead are dropped and come again: an
		// end seen before them must not move the position.
		if l := c.lanes[e.Partition]; l != nil && e.Offset >= 0 && !c.paused[e.Partition] {
			l.reachEnd(mark{offset: int64(e.Offset), epoch: epochOf(confluent.TopicPartition(e))})
		}
	case confluent.Error:
		c.clientError(e)
	}
}

// accept queues a record, and pauses its partition when that fills the lane.
func (c *Consumer) accept(message *confluent.Message) {
	c.heard()
	partition := message.TopicPartition.Partition
	l := c.lanes[partition]
	if l == nil {
		return // not ours any more; its owner gets it
	}
	delete(c.awaited, partition)
	if l.push(newItem(c.cfg.Topic, message)) {
		c.pause(partition)
	}
}

// tend keeps the flow going, and returns for how many milliseconds to poll.
func (c *Consumer) tend() int {
	c.beginRestored()
	for partition := range c.paused {
		if c.lanes[partition].roomy() {
			c.resume(partition)
		}
	}
	now := c.clock.Now()
	if now.Sub(c.lastPoll) >= tendEvery {
		c.mu.Lock()
		c.lastPoll = now
		c.mu.Unlock()
		c.readWatermarks()
		c.prod(now)
		c.retake()
	}
	if len(c.paused) > 0 || len(c.owed) > 0 {
		return int(pausedPollWait.Milliseconds())
	}
	return int(pollWait.Milliseconds())
}

// readWatermarks takes the ends of the partitions from the client's cache.
func (c *Consumer) readWatermarks() {
	for partition, l := range c.lanes {
		if c.paused[partition] {
			continue // its cache stands still, and watchEnds knows better
		}
		if _, high, err := c.client.GetWatermarkOffsets(c.cfg.Topic, partition); err == nil {
			l.hear(high)
		}
	}
}

// clientError sorts what the client reports: fatal ends Run, the rest is noted.
func (c *Consumer) clientError(e confluent.Error) {
	switch {
	case e.IsFatal():
		_ = c.fail(e)
	case e.Code() == confluent.ErrMaxPollExceeded:
		c.metrics.maxPollExceeded(c.root)
		c.logger.Error("the poll loop was away too long; the group gives our partitions away", "error", e)
	default:
		c.brokerTrouble(e)
	}
}

// fail ends the poll loop with err and returns it. The first one counts.
func (c *Consumer) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fatal == nil {
		c.fatal = err
	}
	return c.fatal
}

func (c *Consumer) fatalError() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.fatal
}

// brokerTrouble notes an error that the client goes on from by itself. During an
// outage they come by the dozen: one in a while is logged.
func (c *Consumer) brokerTrouble(err error) {
	now := c.clock.Now()
	since := now
	if earlier := c.trouble.Load(); earlier != nil {
		since = earlier.since
	}
	c.trouble.Store(&trouble{err: err, since: since})
	if now.Sub(c.troubleTold) >= complainEvery {
		c.troubleTold = now
		c.logger.Warn("broker trouble", "error", err, "since", since)
	}
}

// heard notes that a broker has spoken to us.
func (c *Consumer) heard() {
	if c.trouble.Load() != nil {
		c.trouble.Store(nil)
	}
}

func (c *Consumer) parts(partitions ...int32) []confluent.TopicPartition {
	parts := make([]confluent.TopicPartition, len(partitions))
	for i, partition := range partitions {
		parts[i] = confluent.TopicPartition{Topic: &c.cfg.Topic, Partition: partition}
	}
	return parts
}
