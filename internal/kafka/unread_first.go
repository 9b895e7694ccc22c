package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// firstFetchBytes bounds what is fetched of a partition to see its next record; a batch
// that is larger arrives whole all the same.
const firstFetchBytes = 16 << 10

// firstRecord is the first record at or behind an offset.
type firstRecord struct {
	offset    int64
	timestamp time.Time // zero where it has none
}

// firstRecords returns the next record of each partition at or behind its offset, as a
// consumer sees them; partitions that hold none are left out. It joins no group.
func (c Config) firstRecords(ctx context.Context, logger *slog.Logger, from map[int32]int64) (found map[int32]firstRecord, err error) {
	settings := c.connection()
	maps.Copy(settings, confluent.ConfigMap{
		"group.id":                  c.GroupID,
		"auto.offset.reset":         "earliest",
		"enable.auto.commit":        false,
		"enable.auto.offset.store":  false,
		"isolation.level":           "read_committed",
		"enable.partition.eof":      true,
		"max.partition.fetch.bytes": firstFetchBytes,
		// A partition that has shown its record must not keep the others waiting.
		"queued.min.messages":    1,
		"fetch.queue.backoff.ms": 10,
		"fetch.wait.max.ms":      50,
	})
	end := quietly(settings, logger)
	client, err := confluent.NewConsumer(&settings)
	if err != nil {
		end()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	defer func() {
		closed := make(chan error, 1)
		if !within(closeTimeout, func() { closed <- client.Close(); end() }) {
			err = errors.Join(err, fmt.Errorf("the client did not close within %s", closeTimeout))
			return
		}
		err = errors.Join(err, <-closed)
	}()
	parts := make([]confluent.TopicPartition, 0, len(from))
	for partition, offset := range from {
		parts = append(parts, confluent.TopicPartition{Topic: &c.Topic, Partition: partition, Offset: confluent.Offset(offset)})
	}
	if err := client.Assign(parts); err != nil {
		return nil, fmt.Errorf("assign: %w", err)
	}
	return awaitFirst(ctx, client, len(from))
}

// awaitFirst polls until every one of n partitions has shown a record or its end.
func awaitFirst(ctx context.Context, client *confluent.Consumer, n int) (map[int32]firstRecord, error) {
	found, ended := make(map[int32]firstRecord, n), make(map[int32]bool, n)
	var trouble error
	for len(ended) < n {
		switch e := client.Poll(millisOf(pollWait)).(type) {
		case *confluent.Message:
			at := e.TopicPartition
			if trouble = at.Error; trouble != nil || ended[at.Partition] {
				break
			}
			ended[at.Partition] = true
			found[at.Partition] = firstRecord{offset: int64(at.Offset), timestamp: timestampOf(e)}
			if err := client.IncrementalUnassign([]confluent.TopicPartition{at}); err != nil {
				return nil, fmt.Errorf("unassign: %w", err)
			}
		case confluent.PartitionEOF:
			ended[e.Partition] = true
		case confluent.Error:
			if e.IsFatal() {
				return nil, fmt.Errorf("read: %w", e)
			}
			trouble = e
		}
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(fmt.Errorf("read: %d of %d partitions have not answered: %w", n-len(ended), n, err), trouble)
		}
	}
	return found, nil
}
