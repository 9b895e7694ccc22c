package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

// loggedDuplicate is a row of duplicate_log as it is read.
type loggedDuplicate struct {
	ID             int64 `gorm:"primaryKey"`
	SeenAt         time.Time
	ConsumerGroup  string
	EventID        uuid.UUID
	Kind           string
	Topic          string
	Partition      int32
	Offset         int64
	FirstTopic     *string
	FirstPartition *int32
	FirstOffset    *int64
	FirstSeenAt    *time.Time
}

func (loggedDuplicate) TableName() string { return "duplicate_log" }

// Rows are only ever added, under ids of their own: nobody waits for anybody.
const insertDuplicates = `
INSERT INTO duplicate_log (seen_at, consumer_group, event_id, kind, topic, partition, "offset",
	first_topic, first_partition, first_offset, first_seen_at)
SELECT * FROM unnest(?::timestamptz[], ?::text[], ?::uuid[], ?::text[], ?::text[], ?::integer[], ?::bigint[],
	?::text[], ?::integer[], ?::bigint[], ?::timestamptz[])`

// Log implements [domain.Tx].
func (t tx) Log(ctx context.Context, duplicates []domain.Duplicate) error {
	if len(duplicates) == 0 {
		return nil
	}
	d := refs(duplicates)
	err := t.db.WithContext(ctx).Exec(insertDuplicates,
		columnOf(d, func(d *domain.Duplicate) pgtype.Timestamptz { return toTime(d.SeenAt) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Text { return toText(d.Group) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.UUID { return toUUID(d.EventID) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Text { return toText(string(d.Kind)) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Text { return toText(d.Record.Topic) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Int4 { return toInt4(d.Record.Partition) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Int8 { return toInt8(d.Record.Offset) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Text { return orNull(d.First.Topic) }),
		columnOf(d, func(d *domain.Duplicate) pgtype.Int4 {
			return pgtype.Int4{Int32: d.First.Partition, Valid: d.First.Topic != ""}
		}),
		columnOf(d, func(d *domain.Duplicate) pgtype.Int8 {
			return pgtype.Int8{Int64: d.First.Offset, Valid: d.First.Topic != ""}
		}),
		columnOf(d, func(d *domain.Duplicate) pgtype.Timestamptz { return timeOrNull(d.FirstSeenAt) }),
	).Error
	if err != nil {
		return fmt.Errorf("insert duplicate_log: %w", err)
	}
	return nil
}
