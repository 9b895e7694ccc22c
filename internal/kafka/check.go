package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const (
	// checkFresh is for how long a check's result stands: however often
	// readiness is asked for, the brokers are not.
	checkFresh = 2 * time.Second
	// checkTimeout bounds one question to the brokers.
	checkTimeout = 2 * time.Second
)

// probe remembers the result of the latest check. Its turn is a lock that can be
// waited for with a context.
type probe struct {
	turn  chan struct{}
	at    time.Time
	found error
}

// Check returns nil when the poll loop is alive and a broker answers for the
// topic. It takes at most 2 s: the question itself cannot be broken off, ctx ends
// only the wait for another caller's. An answer is reused for 2 s.
func (c *Consumer) Check(ctx context.Context) error {
	if err := c.alive(); err != nil {
		return err
	}
	select {
	case c.check.turn <- struct{}{}:
		defer func() { <-c.check.turn }()
	case <-ctx.Done():
		return fmt.Errorf("kafka: check: %w", ctx.Err())
	}
	if now := c.clock.Now(); c.check.at.IsZero() || now.Sub(c.check.at) >= checkFresh {
		c.check.found = c.ask()
		c.check.at = c.clock.Now()
	}
	return c.check.found
}

// alive judges by what is known already.
func (c *Consumer) alive() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	away := c.clock.Now().Sub(c.lastPoll)
	switch {
	case c.fatal != nil:
		return fmt.Errorf("kafka: %w", c.fatal)
	case !c.polling:
		return errors.New("kafka: not consuming")
	case !c.lastPoll.IsZero() && away > c.cfg.DrainTimeout+cancelGrace+2*flushTimeout:
		return fmt.Errorf("kafka: the poll loop was last seen %s ago", away.Round(time.Second))
	}
	return nil
}

// ask asks a broker about the topic.
func (c *Consumer) ask() error {
	c.using.RLock()
	defer c.using.RUnlock()
	if c.closed {
		return errors.New("kafka: closed")
	}
	found, err := c.client.GetMetadata(&c.cfg.Topic, false, int(checkTimeout.Milliseconds()))
	if err != nil {
		return fmt.Errorf("kafka: metadata of %s: %w", c.cfg.Topic, err)
	}
	c.heard()
	topic := found.Topics[c.cfg.Topic]
	if topic.Error.Code() != confluent.ErrNoError {
		return fmt.Errorf("kafka: topic %s: %w", c.cfg.Topic, topic.Error)
	}
	for _, partition := range topic.Partitions {
		if partition.Error.Code() != confluent.ErrNoError {
			return fmt.Errorf("kafka: %s/%d: %w", c.cfg.Topic, partition.ID, partition.Error)
		}
	}
	return nil
}
