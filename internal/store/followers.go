package store

import (
	"context"
	"fmt"
)

// Follower is a consumer group that has counted records of a topic here.
type Follower struct {
	Group string
	Topic string
	// Kept are the positions that it keeps in this database, by partition; nil: none.
	Kept map[int32]int64
}

// Every group and topic that was ever counted has a sum for ever, or minutes that are
// not rolled up yet.
const selectFollowers = `
SELECT f.consumer_group, f.topic, o.partition, o."offset"
FROM (
	SELECT consumer_group, topic FROM dedup_stat
	UNION SELECT consumer_group, topic FROM dedup_stat_rollup WHERE span = 'ever'
	UNION SELECT consumer_group, topic FROM consumer_offset
) AS f
LEFT JOIN consumer_offset AS o ON o.consumer_group = f.consumer_group AND o.topic = f.topic AND o."offset" IS NOT NULL
ORDER BY 1, 2, 3`

// Followers returns the groups of all topics, in order: those that share this database,
// also such as exist no more.
func (s *Store) Followers(ctx context.Context) ([]Follower, error) {
	var rows []struct {
		ConsumerGroup string
		Topic         string
		Partition     *int32
		Offset        *int64
	}
	if err := s.archive.WithContext(ctx).Raw(selectFollowers).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read the groups: %w", err)
	}
	var all []Follower
	for _, r := range rows {
		if n := len(all); n == 0 || all[n-1].Group != r.ConsumerGroup || all[n-1].Topic != r.Topic {
			all = append(all, Follower{Group: r.ConsumerGroup, Topic: r.Topic})
		}
		if r.Partition == nil {
			continue
		}
		f := &all[len(all)-1]
		if f.Kept == nil {
			f.Kept = map[int32]int64{}
		}
		f.Kept[*r.Partition] = *r.Offset
	}
	return all, nil
}
