package kafka

import (
	"context"
	"errors"
	"fmt"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// Read hands the records of [from, to) over in batches, in their order. Where the
// partition ends before to, it returns at its end.
func (r *AuditReader) Read(ctx context.Context, partition int32, from, to int64, fn func([]domain.Record) error) error {
	if from >= to {
		return nil
	}
	err := r.client.Assign([]confluent.TopicPartition{{Topic: &r.topic, Partition: partition, Offset: confluent.Offset(from)}})
	if err != nil {
		return fmt.Errorf("kafka: assign %s/%d: %w", r.topic, partition, err)
	}
	b := auditing{fn: fn, topic: r.topic, partition: partition, from: from, to: to}
	heard := r.clock.Now()
	for !b.ended {
		event := r.client.Poll(millisOf(pollWait))
		if err := ctx.Err(); err != nil {
			return err
		}
		progress, err := b.take(event)
		if err != nil {
			return err
		}
		now := r.clock.Now()
		if progress {
			heard = now
		} else if now.Sub(heard) > auditSilence {
			silence := fmt.Errorf("kafka: %s/%d: neither a record nor the end for %s", r.topic, partition, auditSilence)
			return errors.Join(silence, b.trouble)
		}
	}
	return b.flush()
}

// auditing is the reading of one partition.
type auditing struct {
	fn        func([]domain.Record) error
	topic     string
	partition int32
	from, to  int64
	batch     []domain.Record
	bytes     int
	ended     bool
	trouble   error
}

// take takes what one poll returned, and reports whether it brought us on.
func (b *auditing) take(event confluent.Event) (progress bool, err error) {
	switch e := event.(type) {
	case *confluent.Message:
		if b.trouble = e.TopicPartition.Error; b.trouble == nil {
			return b.accept(e)
		}
	case confluent.PartitionEOF:
		// Of this assignment only: what was read before may still be on its way.
		if e.Partition == b.partition && int64(e.Offset) >= b.from {
			b.ended = true
			return true, nil
		}
	case confluent.Error:
		if e.IsFatal() {
			return false, fmt.Errorf("kafka: %w", e)
		}
		b.trouble = e
	}
	return false, nil
}

func (b *auditing) accept(m *confluent.Message) (bool, error) {
	offset := int64(m.TopicPartition.Offset)
	if m.TopicPartition.Partition != b.partition || offset < b.from {
		return false, nil
	}
	if offset >= b.to {
		b.ended = true
		return true, nil
	}
	taken := newItem(b.topic, m)
	b.batch = append(b.batch, taken.record)
	b.bytes += taken.bytes
	b.from, b.ended = offset+1, offset+1 >= b.to
	if len(b.batch) >= auditBatch || b.bytes >= auditBatchBytes {
		return true, b.flush()
	}
	return true, nil
}

// flush hands over what has been gathered.
func (b *auditing) flush() error {
	if len(b.batch) == 0 {
		return nil
	}
	err := b.fn(b.batch)
	b.batch, b.bytes = nil, 0
	return err
}
