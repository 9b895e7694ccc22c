package kafka

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// unreadTimeout bounds one answer of an [UnreadReader], all its questions together.
const unreadTimeout = 45 * time.Second

// Followed is a group that consumes a topic, as the database knows it.
type Followed struct {
	Group string
	Topic string
	// Kept are the positions that are kept outside of Kafka, by partition; nil: none.
	Kept map[int32]int64
}

// UnreadReader tells which records groups have not consumed yet. It joins no group, and
// connects for each question anew: they are minutes apart.
type UnreadReader struct {
	cfg      Config
	logger   *slog.Logger
	followed func(context.Context) ([]Followed, error)
}

// NewUnreadReader returns a reader for the topic and group of cfg, and for all others
// that followed names. Of cfg.Positions it takes only whether there are any: then
// what followed says is kept of our own group is where that goes on. The client's own
// lines go to logger, at debug.
func NewUnreadReader(cfg Config, logger *slog.Logger, followed func(context.Context) ([]Followed, error)) (*UnreadReader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &UnreadReader{cfg: cfg, logger: logger, followed: followed}, nil
}

// UnreadBefore returns the partitions whose first record that a group has not consumed is
// older than at, by its timestamp; what lies behind it counts as later. Of our own group
// every record that is still there is unread where it has no position; another group
// without any, or whose topic is gone, consumes no more and keeps nothing. Control records
// and aborted ones are no records, and what lies behind the last stable offset nobody can
// read yet.
//
// An error means that it is not known. It takes 45 seconds at most.
func (u *UnreadReader) UnreadBefore(ctx context.Context, at time.Time) ([]domain.Unread, error) {
	ctx, cancel := context.WithTimeout(ctx, unreadTimeout)
	defer cancel()
	followed, err := u.everyone(ctx)
	if err != nil {
		return nil, err
	}
	unread, err := u.ask(ctx, followed, at)
	return unread, u.cfg.asked(err)
}

// ask asks the brokers about all groups.
func (u *UnreadReader) ask(ctx context.Context, followed []Followed, at time.Time) ([]domain.Unread, error) {
	admin, free, err := u.cfg.asking(u.logger)
	if err != nil {
		return nil, err
	}
	defer free()
	topics := map[string][]extent{}
	var unread []domain.Unread
	for _, f := range followed {
		asked := &GroupAdmin{cfg: u.cfg, admin: admin}
		asked.cfg.Topic, asked.cfg.GroupID = f.Topic, f.Group
		if _, known := topics[f.Topic]; !known {
			if topics[f.Topic], err = asked.extents(ctx, at); err != nil {
				if gone(err) && f.Topic != u.cfg.Topic {
					continue
				}
				return nil, fmt.Errorf("unread records of %s: %w", f.Topic, err)
			}
		}
		some, err := u.unreadOf(ctx, asked, f, topics[f.Topic], at)
		if err != nil {
			return nil, fmt.Errorf("unread records of %s: %w", f.Topic, err)
		}
		unread = append(unread, some...)
	}
	return unread, nil
}

// everyone returns all groups and topics, ours included, in order.
func (u *UnreadReader) everyone(ctx context.Context) ([]Followed, error) {
	followed, err := u.followed(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(followed, u.ours) {
		followed = append(followed, Followed{Group: u.cfg.GroupID, Topic: u.cfg.Topic})
	}
	slices.SortFunc(followed, func(a, b Followed) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group))
	})
	return followed, nil
}

func (u *UnreadReader) ours(f Followed) bool {
	return f.Group == u.cfg.GroupID && f.Topic == u.cfg.Topic
}

// extent is what there is of a partition. Later is the first offset whose timestamp is at
// or after the instant in question, end where there is none.
type extent struct {
	partition         int32
	first, later, end int64
}

// extents returns those of the topic, by partition.
func (g *GroupAdmin) extents(ctx context.Context, at time.Time) ([]extent, error) {
	partitions, err := g.partitions(ctx)
	if err != nil {
		return nil, err
	}
	ask := func(spec confluent.OffsetSpec) (offsets map[int32]int64) {
		if err == nil {
			offsets, err = listOffsets(ctx, g.admin, g.cfg.Topic, partitions, spec, confluent.IsolationLevelReadCommitted)
		}
		return offsets
	}
	first := ask(confluent.EarliestOffsetSpec)
	later := ask(confluent.NewOffsetSpecForTimestamp(at.UnixMilli()))
	end := ask(confluent.LatestOffsetSpec)
	if err != nil {
		return nil, err
	}
	extents := make([]extent, len(partitions))
	for i, p := range partitions {
		extents[i] = extent{partition: p, first: first[p], later: end[p], end: end[p]}
		if later[p] >= 0 {
			extents[i].later = min(later[p], end[p])
		}
	}
	return extents, nil
}

// unreadOf returns the partitions of which a group has not consumed everything.
func (u *UnreadReader) unreadOf(ctx context.Context, asked *GroupAdmin, f Followed, extents []extent, at time.Time) (unread []domain.Unread, err error) {
	behind, err := u.behind(ctx, asked, f, extents)
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	next, err := asked.cfg.firstRecords(ctx, u.logger, behind)
	if err != nil {
		return nil, err
	}
	for _, e := range extents {
		if first, some := next[e.partition]; some && first.timestamp.Before(at) {
			unread = append(unread, domain.Unread{
				Group: f.Group, Topic: f.Topic, Partition: e.partition, Records: max(1, e.later-first.offset),
			})
		}
	}
	return unread, nil
}

// behind returns where a group stands in the partitions that it is not at the end of.
func (u *UnreadReader) behind(ctx context.Context, asked *GroupAdmin, f Followed, extents []extent) (map[int32]int64, error) {
	partitions := make([]int32, len(extents))
	for i, e := range extents {
		partitions[i] = e.partition
	}
	committed, err := asked.committed(ctx, partitions)
	if err != nil {
		return nil, err
	}
	follows := u.ours(f) || len(f.Kept) > 0
	for _, offset := range committed {
		follows = follows || offset >= 0
	}
	if !follows {
		return nil, nil
	}
	behind := map[int32]int64{}
	var beyond []extent
	for _, e := range extents {
		switch at := max(e.first, u.position(f, e.partition, committed[e.partition])); {
		case at < e.end:
			behind[e.partition] = at
		case at > e.end:
			beyond = append(beyond, e)
		}
	}
	return behind, u.anew(ctx, asked, beyond, func(e extent, end int64) {
		if u.position(f, e.partition, committed[e.partition]) > end && e.first < end {
			behind[e.partition] = e.first
		}
	})
}

// anew asks again for the ends of partitions of which a group stands beyond the end. As a rule it has
// only gone on since the end was asked for. Where it still does, the topic was deleted and
// created again, or has lost records: consumers begin at the first record of such a partition.
func (*UnreadReader) anew(ctx context.Context, asked *GroupAdmin, beyond []extent, found func(extent, int64)) error {
	if len(beyond) == 0 {
		return nil
	}
	partitions := make([]int32, len(beyond))
	for i, e := range beyond {
		partitions[i] = e.partition
	}
	ends, err := listOffsets(ctx, asked.admin, asked.cfg.Topic, partitions, confluent.LatestOffsetSpec, confluent.IsolationLevelReadCommitted)
	if err != nil {
		return err
	}
	for _, e := range beyond {
		found(e, ends[e.partition])
	}
	return nil
}

// position returns where a group goes on, -1 where it has no position. Where ours keeps
// its positions outside of Kafka, those count alone: Kafka's are for tools, and an
// operator may have set ours back. How another group keeps its own is not known: the
// smaller one counts.
func (u *UnreadReader) position(f Followed, partition int32, committed int64) int64 {
	kept, some := f.Kept[partition]
	switch {
	case !some, u.ours(f) && u.cfg.Positions == nil:
		return committed
	case u.ours(f), committed < 0:
		return kept
	}
	return min(kept, committed)
}

// gone reports whether an error says that there is no such topic.
func gone(err error) bool {
	return isCode(err, confluent.ErrUnknownTopicOrPart) || isCode(err, confluent.ErrUnknownTopic)
}
