package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// consumerOffset is a row of consumer_offset.
type consumerOffset struct {
	ConsumerGroup string `gorm:"primaryKey"`
	Topic         string `gorm:"primaryKey"`
	Partition     int32  `gorm:"primaryKey;autoIncrement:false"`
	Offset        sql.NullInt64
	LeaderEpoch   sql.NullInt32
	Metadata      string
	Epoch         int64
	TakenAt       time.Time
	MovedAt       sql.NullTime
}

func (consumerOffset) TableName() string { return "consumer_offset" }

func (r *consumerOffset) position() domain.Position {
	at := domain.Position{
		Group: r.ConsumerGroup, Topic: r.Topic, Partition: r.Partition, Epoch: r.Epoch,
		Next: domain.NoOffset, LeaderEpoch: domain.NoLeaderEpoch,
	}
	if r.Offset.Valid {
		at.Next = r.Offset.Int64
	}
	if r.LeaderEpoch.Valid {
		at.LeaderEpoch = r.LeaderEpoch.Int32
	}
	return at
}

// Offsets are the positions of partitions, for a group that keeps them here. Its
// transactions are short ones of the side pool; a batch writes its position by
// [domain.Tx].
type Offsets struct {
	store *Store
	owner string
}

// Offsets returns the positions as the named owner takes them.
func (s *Store) Offsets(owner string) *Offsets { return &Offsets{store: s, owner: owner} }

const takeOffset = `
INSERT INTO consumer_offset (consumer_group, topic, partition, metadata, epoch) VALUES (?, ?, ?, ?, 1)
ON CONFLICT (consumer_group, topic, partition) DO UPDATE SET
	epoch = consumer_offset.epoch + 1, metadata = excluded.metadata, taken_at = now()
RETURNING consumer_group, topic, partition, "offset", leader_epoch, epoch`

// Take raises the epoch of a partition and returns its position: whoever took it
// before writes nothing any more. It waits for a write that is being committed, at
// most for the side pool's lock timeout.
func (o *Offsets) Take(ctx context.Context, group, topic string, partition int32) (domain.Position, error) {
	var row consumerOffset
	err := o.store.side.WithContext(ctx).Raw(takeOffset, group, topic, partition, o.owner).Scan(&row).Error
	if err != nil {
		return domain.Position{}, fmt.Errorf("take %s/%d: %w", topic, partition, translate(err))
	}
	return row.position(), nil
}

const moveOffset = `
UPDATE consumer_offset SET
	leader_epoch = CASE WHEN coalesce("offset", -1) < m.next THEN m.leader ELSE leader_epoch END,
	moved_at = CASE WHEN coalesce("offset", -1) < m.next THEN now() ELSE moved_at END,
	"offset" = greatest("offset", m.next)
FROM (SELECT ?::bigint AS next, ?::integer AS leader) AS m
WHERE consumer_group = ? AND topic = ? AND partition = ? AND epoch = ?`

// Move implements [domain.Tx]. Batches of a partition commit in any order, so that
// the greater position stays; one that moves nothing is fenced all the same.
func (t tx) Move(ctx context.Context, at domain.Position) error {
	return writeOffset(t.db.WithContext(ctx), moveOffset, at)
}

// Move is [domain.Tx]'s, in a transaction of its own.
func (o *Offsets) Move(ctx context.Context, at domain.Position) error {
	return o.store.Aside(ctx, func(tx domain.Tx) error { return tx.Move(ctx, at) })
}

const rewindOffset = `
UPDATE consumer_offset SET "offset" = m.next, leader_epoch = m.leader, moved_at = CASE WHEN m.next IS NULL THEN NULL ELSE now() END
FROM (SELECT ?::bigint AS next, ?::integer AS leader) AS m
WHERE consumer_group = ? AND topic = ? AND partition = ? AND epoch = ?`

// Rewind sets the position, backwards too: the log itself has gone back. No batch
// of the partition may be in flight. ErrFenced as with Move.
func (o *Offsets) Rewind(ctx context.Context, at domain.Position) error {
	return translate(writeOffset(o.store.side.WithContext(ctx), rewindOffset, at))
}

func writeOffset(db *gorm.DB, statement string, at domain.Position) error {
	result := db.Exec(statement,
		sql.NullInt64{Int64: at.Next, Valid: at.Next >= 0}, sql.NullInt32{Int32: at.LeaderEpoch, Valid: at.LeaderEpoch >= 0},
		at.Group, at.Topic, at.Partition, at.Epoch)
	switch {
	case result.Error != nil:
		return fmt.Errorf("update consumer_offset: %w", result.Error)
	case result.RowsAffected == 0:
		return fmt.Errorf("%s/%d, epoch %d: %w", at.Topic, at.Partition, at.Epoch, domain.ErrFenced)
	}
	return nil
}

// List returns the positions of a topic's partitions that have a row, in order.
func (o *Offsets) List(ctx context.Context, group, topic string) ([]domain.Position, error) {
	var rows []consumerOffset
	err := o.store.archive.WithContext(ctx).Where("consumer_group = ? AND topic = ?", group, topic).Order("partition").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read consumer_offset: %w", err)
	}
	positions := make([]domain.Position, len(rows))
	for i := range rows {
		positions[i] = rows[i].position()
	}
	return positions, nil
}

const resetOffset = `
INSERT INTO consumer_offset (consumer_group, topic, partition, "offset", metadata, epoch, moved_at) VALUES (?, ?, ?, ?, ?, 1, now())
ON CONFLICT (consumer_group, topic, partition) DO UPDATE SET
	"offset" = excluded."offset", leader_epoch = NULL, metadata = excluded.metadata, epoch = consumer_offset.epoch + 1, moved_at = now()`

// Reset sets positions by hand, all or none, and fences whoever has the partitions.
func (o *Offsets) Reset(ctx context.Context, group, topic string, to map[int32]int64) error {
	err := o.store.side.WithContext(ctx).Transaction(func(db *gorm.DB) error {
		for _, partition := range slices.Sorted(maps.Keys(to)) {
			if err := db.Exec(resetOffset, group, topic, partition, to[partition], o.owner).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reset consumer_offset: %w", err)
	}
	return nil
}
