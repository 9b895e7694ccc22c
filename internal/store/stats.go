package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// dedupStat is a row of dedup_stat.
type dedupStat struct {
	ConsumerGroup  string    `gorm:"primaryKey"`
	Topic          string    `gorm:"primaryKey"`
	Partition      int32     `gorm:"primaryKey;autoIncrement:false"`
	Minute         time.Time `gorm:"primaryKey"`
	Received       int64
	Processed      int64
	Recovered      int64
	Redelivered    int64
	Republished    int64
	Conflicting    int64
	Invalid        int64
	Captured       int64
	Declined       int64
	DuplicateOrder int64
	Discarded      int64
	NonV7          int64 `gorm:"column:non_v7"`
}

func (dedupStat) TableName() string { return "dedup_stat" }

// counterColumns are the columns that an upsert adds to.
func counterColumns() []string {
	return []string{
		"received", "processed", "recovered", "redelivered", "republished", "conflicting",
		"invalid", "captured", "declined", "duplicate_order", "discarded", "non_v7",
	}
}

// Count implements [domain.Tx]. The rows are locked in the order of their keys.
func (t tx) Count(ctx context.Context, stats domain.Stats) error {
	keys := slices.SortedFunc(maps.Keys(stats), byKey)
	rows := make([]dedupStat, 0, len(keys))
	for _, k := range keys {
		n := stats[k]
		if n == (domain.Counters{}) {
			continue
		}
		rows = append(rows, dedupStat{
			ConsumerGroup: k.Group, Topic: k.Topic, Partition: k.Partition, Minute: k.Minute,
			Received: n.Received, Processed: n.Processed, Recovered: n.Recovered,
			Redelivered: n.Redelivered, Republished: n.Republished, Conflicting: n.Conflicting,
			Invalid: n.Invalid, Captured: n.Captured, Declined: n.Declined,
			DuplicateOrder: n.DuplicateOrder, Discarded: n.Discarded, NonV7: n.NonV7,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	err := t.db.WithContext(ctx).Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "consumer_group"}, {Name: "topic"}, {Name: "partition"}, {Name: "minute"}},
		DoUpdates: addition(),
	}).Create(&rows).Error
	if err != nil {
		return fmt.Errorf("upsert dedup_stat: %w", err)
	}
	return nil
}

// addition adds the inserted counters to those that are there.
func addition() clause.Set {
	var set clause.Set
	for _, c := range counterColumns() {
		set = append(set, clause.Assignment{
			Column: clause.Column{Name: c},
			Value:  gorm.Expr(fmt.Sprintf("dedup_stat.%[1]s + excluded.%[1]s", c)),
		})
	}
	return set
}

func byKey(a, b domain.StatKey) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic),
		cmp.Compare(a.Partition, b.Partition), a.Minute.Compare(b.Minute),
	)
}
