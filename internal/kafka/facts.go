package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// Forever is the retention of a topic that forgets nothing.
const Forever = time.Duration(-1)

// factsTimeout bounds one question about the topic's settings.
const factsTimeout = time.Second

// TopicRetention asks a broker for how long the topic keeps its records, within a second.
func (c *Consumer) TopicRetention(ctx context.Context) (time.Duration, error) {
	c.using.RLock()
	defer c.using.RUnlock()
	if c.closed {
		return 0, errors.New("kafka: closed")
	}
	admin, err := confluent.NewAdminClientFromConsumer(c.client)
	if err != nil {
		return 0, fmt.Errorf("kafka: admin client: %w", err)
	}
	defer admin.Close() // the consumer's client stays
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	found, err := admin.DescribeConfigs(ctx,
		[]confluent.ConfigResource{{Type: confluent.ResourceTopic, Name: c.cfg.Topic}},
		confluent.SetAdminRequestTimeout(factsTimeout))
	if err != nil {
		return 0, fmt.Errorf("kafka: settings of %s: %w", c.cfg.Topic, err)
	}
	for _, topic := range found {
		if topic.Error.Code() != confluent.ErrNoError {
			return 0, fmt.Errorf("kafka: settings of %s: %w", c.cfg.Topic, topic.Error)
		}
		if entry, ok := topic.Config["retention.ms"]; ok {
			return retentionOf(entry.Value)
		}
	}
	return 0, fmt.Errorf("kafka: settings of %s: no retention.ms among them", c.cfg.Topic)
}

// retentionOf reads a retention.ms. What is longer than Go can tell is for ever.
func retentionOf(text string) (time.Duration, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	const most = int64(1<<63-1) / int64(time.Millisecond)
	switch {
	case err != nil:
		return 0, fmt.Errorf("kafka: retention.ms=%q: not a number", text)
	case ms < 0 || ms > most:
		return Forever, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}
