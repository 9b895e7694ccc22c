package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// Bounds of an audit's reading.
const (
	auditQuestion   = 20 * time.Second // one question to the brokers
	auditSilence    = 60 * time.Second // neither a record nor the end of the partition
	auditBatch      = 1000             // records that are handed over at a time
	auditBatchBytes = 8 << 20          // bytes of records, unless a single one is larger
)

// ErrNoTopic is returned by an [AuditReader] whose topic does not exist.
var ErrNoTopic = errors.New("no such topic")

// AuditReader reads a topic beside the group that consumes it: by assignment, so
// that it joins no group, and without a commit. Like the group it reads committed
// records only. One goroutine may use it.
type AuditReader struct {
	cfg    Config
	topic  string
	client *confluent.Consumer
	clock  domain.Clock
	end    func() // of the client's own lines
}

// NewAuditReader returns a reader that has connected to nobody yet. The client's own lines go
// to logger, at debug.
func NewAuditReader(cfg Config, logger *slog.Logger, clock domain.Clock) (*AuditReader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	settings := cfg.connection()
	maps.Copy(settings, confluent.ConfigMap{
		"group.id":                   cfg.GroupID, // to ask for its position; never joined
		"auto.offset.reset":          "earliest",
		"enable.auto.commit":         false,
		"enable.auto.offset.store":   false,
		"isolation.level":            "read_committed",
		"enable.partition.eof":       true,
		"queued.max.messages.kbytes": 2 * prefetchKiB,
		"fetch.queue.backoff.ms":     20,
	})
	end := quietly(settings, logger)
	client, err := confluent.NewConsumer(&settings)
	if err != nil {
		end()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &AuditReader{cfg: cfg, topic: cfg.Topic, client: client, clock: clock, end: end}, nil
}

// Close frees the client. It takes at most 10 s, then the client is left open:
// the process is expected to end.
func (r *AuditReader) Close() error {
	closed := make(chan error, 1)
	if !within(closeTimeout, func() { closed <- r.client.Close(); r.end() }) {
		return fmt.Errorf("kafka: the client did not close within %s", closeTimeout)
	}
	return <-closed
}

// Extents returns what there is of each partition, and how far the group is.
func (r *AuditReader) Extents(ctx context.Context) ([]domain.Extent, error) {
	extents, err := r.extents(ctx)
	return extents, r.cfg.asked(err)
}

func (r *AuditReader) extents(ctx context.Context) ([]domain.Extent, error) {
	parts, err := r.partitions()
	if err != nil {
		return nil, err
	}
	committed, err := r.client.Committed(parts, millisOf(auditQuestion))
	if isCode(err, confluent.ErrGroupIDNotFound) {
		committed, err = parts, nil // nobody has joined it yet: no position
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets: %w", err)
	}
	extents := make([]domain.Extent, len(parts))
	for i, part := range committed {
		if part.Error != nil {
			return nil, fmt.Errorf("committed offset of %s/%d: %w", r.topic, part.Partition, part.Error)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		low, high, err := r.client.QueryWatermarkOffsets(r.topic, part.Partition, millisOf(auditQuestion))
		if err != nil {
			return nil, fmt.Errorf("ends of %s/%d: %w", r.topic, part.Partition, err)
		}
		extents[i] = domain.Extent{Partition: part.Partition, Start: low, End: high, Committed: max(-1, int64(part.Offset))}
	}
	return extents, nil
}

// partitions returns those of the topic, in the order of their numbers.
func (r *AuditReader) partitions() ([]confluent.TopicPartition, error) {
	found, err := r.client.GetMetadata(&r.topic, false, millisOf(auditQuestion))
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", r.topic, err)
	}
	topic := found.Topics[r.topic]
	switch topic.Error.Code() {
	case confluent.ErrNoError:
	case confluent.ErrUnknownTopicOrPart, confluent.ErrUnknownTopic:
		return nil, fmt.Errorf("topic %s: %w", r.topic, ErrNoTopic)
	default:
		return nil, fmt.Errorf("topic %s: %w", r.topic, topic.Error)
	}
	parts := make([]confluent.TopicPartition, len(topic.Partitions))
	for i, p := range topic.Partitions {
		parts[i] = confluent.TopicPartition{Topic: &r.topic, Partition: p.ID, Offset: confluent.OffsetInvalid}
	}
	slices.SortFunc(parts, func(x, y confluent.TopicPartition) int { return int(x.Partition) - int(y.Partition) })
	return parts, nil
}

// OffsetsAt returns, by partition, the first offset whose record is at or after an
// instant. Partitions without one are left out.
func (r *AuditReader) OffsetsAt(_ context.Context, at time.Time) (map[int32]int64, error) {
	offsets, err := r.offsetsAt(at)
	return offsets, r.cfg.asked(err)
}

func (r *AuditReader) offsetsAt(at time.Time) (map[int32]int64, error) {
	parts, err := r.partitions()
	if err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].Offset = confluent.Offset(at.UnixMilli())
	}
	found, err := r.client.OffsetsForTimes(parts, millisOf(auditQuestion))
	if err != nil {
		return nil, fmt.Errorf("offsets at %s: %w", at.UTC().Format(time.RFC3339), err)
	}
	offsets := map[int32]int64{}
	for _, part := range found {
		if part.Error != nil {
			return nil, fmt.Errorf("offset of %s/%d: %w", r.topic, part.Partition, part.Error)
		}
		if part.Offset >= 0 {
			offsets[part.Partition] = int64(part.Offset)
		}
	}
	return offsets, nil
}

func millisOf(d time.Duration) int { return int(d.Milliseconds()) }
