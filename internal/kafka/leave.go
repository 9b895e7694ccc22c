package kafka

import (
	"encoding/json"
	"fmt"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const (
	// statsInterval is how often the client reports its state, in milliseconds: about
	// as long a shutdown waits to know whether it may close the client.
	statsInterval = 200
	// settleTimeout bounds the wait for a moment in which the client may be closed.
	settleTimeout = 3 * time.Second
)

// leave leaves the group and closes the client when that is safe: while a rebalance
// is under way closing may hang or crash the process, and without a coordinator too
// (librdkafka 2.13; its issue 5347). Where it is not safe the client stays open. Until the
// process ends it beats on, and the group counts on it; from then on that costs the group one
// session timeout. It loses nothing, since what is durable is committed already. Not
// to be called after a fatal error: closing may hang for ever then.
func (c *Consumer) leave() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	settled := c.settle()
	if err := c.fatalError(); err != nil {
		return fmt.Errorf("leave the group: %w", err)
	}
	if !settled {
		c.logger.Warn("the group did not settle; it will notice by the session timeout that we left",
			"after", settleTimeout)
		return nil
	}
	return c.closeClient()
}

// settle polls until the client is in the middle of nothing; it reports false when
// that takes too long.
func (c *Consumer) settle() bool {
	if parts, err := c.client.Assignment(); err == nil && len(parts) > 0 {
		_ = c.client.Pause(parts) // records would only be in the way; on an error it takes longer
	}
	fresh := false // what was reported while we drained tells nothing
	end := c.clock.Now().Add(settleTimeout)
	for c.clock.Now().Before(end) && c.fatalError() == nil {
		switch e := c.client.Poll(int(pausedPollWait.Milliseconds())).(type) {
		case nil:
			fresh = true
		case *confluent.Stats:
			if fresh && settled(e.String()) {
				return true
			}
		case confluent.Error:
			c.clientError(e)
		}
	}
	return false
}

// settled reads from the client's statistics whether its coordinator is known and
// no rebalance is under way.
func settled(statistics string) bool {
	var now struct {
		Group struct {
			State     string `json:"state"`
			JoinState string `json:"join_state"`
		} `json:"cgrp"`
	}
	if err := json.Unmarshal([]byte(statistics), &now); err != nil {
		return false
	}
	return now.Group.State == "up" && (now.Group.JoinState == "steady" || now.Group.JoinState == "init")
}

// closeClient closes the client. It waits a bounded time: closing has hung for
// ever in the field, and the process must end regardless.
func (c *Consumer) closeClient() error {
	closed := make(chan error, 1)
	go func() { // owned by the client if it hangs; there is no way to end it
		c.using.Lock()
		c.closed = true
		c.using.Unlock()
		closed <- c.client.Close()
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("close kafka client: %w", err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("close kafka client: not done within %s", closeTimeout)
	}
}
