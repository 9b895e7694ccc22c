package app

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/billing/internal/kafka"
)

// target is where a reset goes: earliest, latest, an offset, or a time.
type target struct {
	word   string
	offset int64
	time   time.Time
}

func parseTarget(to string) (target, error) {
	if to == "earliest" || to == "latest" {
		return target{word: to}, nil
	}
	if n, err := strconv.ParseInt(to, 10, 64); err == nil && n >= 0 {
		return target{offset: n}, nil
	}
	if at, err := time.Parse(time.RFC3339, to); err == nil {
		return target{time: at}, nil
	}
	return target{}, fmt.Errorf("--to %q: neither earliest, latest, an offset, nor a time such as 2026-01-31T12:00:00Z", to)
}

// change is one partition that a reset moves.
type change struct {
	Partition int32
	From      *int64 // where the group would go on now, in its store; nil: nowhere yet
	To        int64
	// Unread is how many offsets lie between where the group would go on and To: their records
	// would never be read. Control records of transactions count among them. 0: it goes back.
	Unread int64
}

// plan tells what a reset would change. It fails on an offset outside of the log.
func (o *offsets) plan(ctx context.Context, to target, partitions []int32, now OffsetsReport) ([]change, error) {
	var chosen []kafka.Offsets
	next := make(map[int32]int64, len(now.Partitions))
	for _, p := range now.Partitions {
		next[p.Partition] = p.next(now.OffsetStore)
		if len(partitions) == 0 || slices.Contains(partitions, p.Partition) {
			chosen = append(chosen, kafka.Offsets{Partition: p.Partition, First: p.First, End: p.End})
		}
	}
	for _, asked := range partitions {
		if !slices.ContainsFunc(chosen, func(p kafka.Offsets) bool { return p.Partition == asked }) {
			return nil, fmt.Errorf("topic %s has no partition %d", now.Topic, asked)
		}
	}
	var times map[int32]int64
	if !to.time.IsZero() {
		var err error
		if times, err = o.brokers.At(ctx, to.time, chosen); err != nil {
			return nil, err
		}
	}
	var changes []change
	for _, p := range chosen {
		c := change{Partition: p.Partition, From: now.at(p.Partition)}
		switch {
		case to.word == "earliest":
			c.To = p.First
		case to.word == "latest":
			c.To = p.End
		case times != nil:
			c.To = times[p.Partition]
		case to.offset < p.First || to.offset > p.End:
			return nil, fmt.Errorf("partition %d has no offset %d: it holds %d to %d", p.Partition, to.offset, p.First, p.End)
		default:
			c.To = to.offset
		}
		c.Unread = max(0, c.To-next[p.Partition])
		changes = append(changes, c)
	}
	return changes, nil
}

// at is what the store of positions holds for a partition.
func (r *OffsetsReport) at(partition int32) *int64 {
	for _, p := range r.Partitions {
		if p.Partition == partition {
			if r.OffsetStore == inPostgres {
				return p.Database
			}
			return p.Kafka
		}
	}
	return nil
}

// apply carries the changes out: first in the store that counts.
func (o *offsets) apply(ctx context.Context, changes []change) error {
	to := make(map[int32]int64, len(changes))
	for _, c := range changes {
		to[c.Partition] = c.To
	}
	if o.settings.OffsetStore == inPostgres {
		if err := o.book.Reset(ctx, o.settings.Kafka.GroupID, o.settings.Kafka.Topic, to); err != nil {
			return err
		}
	}
	return o.brokers.Commit(ctx, to)
}
