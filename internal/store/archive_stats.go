package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// DedupStats implements [domain.Archive]. It reads one snapshot, so that the
// identities between the figures hold while the flow goes on.
func (s *Store) DedupStats(ctx context.Context, group string, since time.Time) (domain.DedupStats, error) {
	var stats domain.DedupStats
	err := snapshot(ctx, s.archive, func(db *gorm.DB) error {
		partitions, err := countersOf(db, group, since)
		if err != nil {
			return err
		}
		if err := addOpen(db, group, partitions); err != nil {
			return err
		}
		for _, p := range sortedPartitions(partitions) {
			stats.Partitions = append(stats.Partitions, *p)
			stats.Total.Counters = stats.Total.Plus(p.Counters)
			stats.Total.Unfinished += p.Unfinished
			stats.Total.Parked += p.Parked
		}
		return nil
	})
	if err != nil {
		return stats, err
	}
	stats.Table, err = describeTable(ctx, s.archive)
	return stats, err
}

type partitionKey struct {
	topic     string
	partition int32
}

type partitionMap map[partitionKey]*domain.PartitionStats

func (m partitionMap) at(topic string, partition int32) *domain.PartitionStats {
	k := partitionKey{topic, partition}
	if m[k] == nil {
		m[k] = &domain.PartitionStats{Topic: topic, Partition: partition}
	}
	return m[k]
}

func sortedPartitions(m partitionMap) []*domain.PartitionStats {
	return slices.SortedFunc(maps.Values(m), func(a, b *domain.PartitionStats) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// addOpen counts the claimed intents of each partition: what time will finish,
// and what waits for an operator.
func addOpen(db *gorm.DB, group string, partitions partitionMap) error {
	var rows []struct {
		SourceTopic     string
		SourcePartition int32
		Unfinished      int64
		Parked          int64
	}
	err := db.Model(&chargeIntent{}).
		Select("source_topic, source_partition, "+
			"count(*) FILTER (WHERE state IN ('waiting', 'calling', 'unknown', 'answered')) AS unfinished, "+
			"count(*) FILTER (WHERE state IN ('parked', 'held')) AS parked").
		Where("claimed AND consumer_group = ?", group).
		Group("source_topic, source_partition").Find(&rows).Error
	if err != nil {
		return fmt.Errorf("count charge_intent: %w", err)
	}
	for _, r := range rows {
		p := partitions.at(r.SourceTopic, r.SourcePartition)
		p.Unfinished, p.Parked = r.Unfinished, r.Parked
	}
	return nil
}
