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
)

// listOffsets asks for one offset of each partition.
func listOffsets(ctx context.Context, admin *confluent.AdminClient, topic string, partitions []int32,
	spec confluent.OffsetSpec, isolation confluent.IsolationLevel,
) (map[int32]int64, error) {
	asked := make(map[confluent.TopicPartition]confluent.OffsetSpec, len(partitions))
	for _, partition := range partitions {
		asked[confluent.TopicPartition{Topic: &topic, Partition: partition}] = spec
	}
	found, err := admin.ListOffsets(ctx, asked, confluent.SetAdminIsolationLevel(isolation),
		confluent.SetAdminRequestTimeout(restoreTimeout))
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, err)
	}
	offsets := make(map[int32]int64, len(partitions))
	var failed []error
	for at, info := range found.ResultInfos {
		if info.Error.Code() != confluent.ErrNoError {
			failed = append(failed, fmt.Errorf("list offsets of %s/%d: %w", topic, at.Partition, info.Error))
			continue
		}
		offsets[at.Partition] = int64(info.Offset)
	}
	return offsets, errors.Join(failed...)
}

// Offsets are where a partition and its group stand. -1: not known, or none.
type Offsets struct {
	Partition int32
	First     int64 // of the records that are still there
	End       int64 // behind the last record that consumers see
	Committed int64 // by the group, in Kafka
}

// Group is what the brokers say about a consumer group of one topic.
type Group struct {
	// Members is how many live members the group has.
	Members int
	// Partitions are all of the topic, in order.
	Partitions []Offsets
}

// adminTimeout bounds each question about a group.
const adminTimeout = 15 * time.Second

// GroupAdmin asks about a consumer group, and moves it, without joining it.
type GroupAdmin struct {
	cfg   Config
	admin *confluent.AdminClient
	free  func()
}

// NewGroupAdmin returns one for the topic and group of cfg. It connects to nobody yet. The
// client's own lines go to logger, at debug.
func NewGroupAdmin(cfg Config, logger *slog.Logger) (*GroupAdmin, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	admin, free, err := cfg.asking(logger)
	if err != nil {
		return nil, err
	}
	return &GroupAdmin{cfg: cfg, admin: admin, free: free}, nil
}

// Close frees the client.
func (g *GroupAdmin) Close() { g.free() }

// Describe tells how many members the group has, and where it stands.
func (g *GroupAdmin) Describe(ctx context.Context) (Group, error) {
	found, err := g.describe(ctx)
	return found, g.cfg.asked(err)
}

func (g *GroupAdmin) describe(ctx context.Context) (Group, error) {
	members, err := g.members(ctx)
	if err != nil {
		return Group{}, err
	}
	partitions, err := g.partitions(ctx)
	if err != nil {
		return Group{}, err
	}
	// Where it stands first: what is read and committed meanwhile is not behind the end then.
	committed, err := g.committed(ctx, partitions)
	if err != nil {
		return Group{}, err
	}
	first, err := listOffsets(ctx, g.admin, g.cfg.Topic, partitions, confluent.EarliestOffsetSpec, confluent.IsolationLevelReadCommitted)
	if err != nil {
		return Group{}, err
	}
	end, err := listOffsets(ctx, g.admin, g.cfg.Topic, partitions, confluent.LatestOffsetSpec, confluent.IsolationLevelReadCommitted)
	if err != nil {
		return Group{}, err
	}
	found := Group{Members: members}
	for _, partition := range partitions {
		found.Partitions = append(found.Partitions, Offsets{
			Partition: partition, First: first[partition], End: end[partition], Committed: committed[partition],
		})
	}
	return found, nil
}

// At returns the offset of each partition's first record that is not older than at; the
// end, where there is none.
func (g *GroupAdmin) At(ctx context.Context, at time.Time, partitions []Offsets) (map[int32]int64, error) {
	numbers := make([]int32, len(partitions))
	for i, p := range partitions {
		numbers[i] = p.Partition
	}
	found, err := listOffsets(ctx, g.admin, g.cfg.Topic, numbers,
		confluent.NewOffsetSpecForTimestamp(at.UnixMilli()), confluent.IsolationLevelReadCommitted)
	if err != nil {
		return nil, g.cfg.asked(err)
	}
	for _, p := range partitions {
		if found[p.Partition] < 0 {
			found[p.Partition] = p.End
		}
	}
	return found, nil
}

// Commit sets the group's offsets. Brokers refuse it while the group has members.
func (g *GroupAdmin) Commit(ctx context.Context, to map[int32]int64) error {
	group := confluent.ConsumerGroupTopicPartitions{Group: g.cfg.GroupID}
	for _, partition := range slices.Sorted(maps.Keys(to)) {
		group.Partitions = append(group.Partitions, confluent.TopicPartition{
			Topic: &g.cfg.Topic, Partition: partition, Offset: confluent.Offset(to[partition]),
		})
	}
	changed, err := g.admin.AlterConsumerGroupOffsets(ctx, []confluent.ConsumerGroupTopicPartitions{group},
		confluent.SetAdminRequestTimeout(adminTimeout))
	if err != nil {
		return g.cfg.asked(fmt.Errorf("commit offsets of group %s: %w", g.cfg.GroupID, err))
	}
	var failed []error
	for _, of := range changed.ConsumerGroupsTopicPartitions {
		for _, at := range of.Partitions {
			if at.Error != nil {
				failed = append(failed, fmt.Errorf("commit %s/%d: %w", g.cfg.Topic, at.Partition, at.Error))
			}
		}
	}
	return g.cfg.asked(errors.Join(failed...))
}

func (g *GroupAdmin) members(ctx context.Context) (int, error) {
	found, err := g.admin.DescribeConsumerGroups(ctx, []string{g.cfg.GroupID}, confluent.SetAdminRequestTimeout(adminTimeout))
	if err != nil {
		return 0, fmt.Errorf("describe group %s: %w", g.cfg.GroupID, err)
	}
	members := 0
	for _, group := range found.ConsumerGroupDescriptions {
		switch group.Error.Code() {
		case confluent.ErrNoError:
			members += len(group.Members)
		case confluent.ErrGroupIDNotFound: // nobody has joined it yet
		default:
			return 0, fmt.Errorf("describe group %s: %w", g.cfg.GroupID, group.Error)
		}
	}
	return members, nil
}

func (g *GroupAdmin) partitions(ctx context.Context) ([]int32, error) {
	found, err := g.admin.DescribeTopics(ctx, confluent.NewTopicCollectionOfTopicNames([]string{g.cfg.Topic}),
		confluent.SetAdminRequestTimeout(adminTimeout))
	if err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", g.cfg.Topic, err)
	}
	var partitions []int32
	for _, topic := range found.TopicDescriptions {
		if topic.Error.Code() != confluent.ErrNoError {
			return nil, fmt.Errorf("describe topic %s: %w", g.cfg.Topic, topic.Error)
		}
		for _, partition := range topic.Partitions {
			partitions = append(partitions, int32(partition.Partition))
		}
	}
	slices.Sort(partitions)
	return partitions, nil
}

// committed returns the group's offsets in Kafka, -1 where it has none.
func (g *GroupAdmin) committed(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	asked := confluent.ConsumerGroupTopicPartitions{Group: g.cfg.GroupID}
	offsets := make(map[int32]int64, len(partitions))
	for _, partition := range partitions {
		offsets[partition] = unknown
		asked.Partitions = append(asked.Partitions, confluent.TopicPartition{Topic: &g.cfg.Topic, Partition: partition})
	}
	found, err := g.admin.ListConsumerGroupOffsets(ctx, []confluent.ConsumerGroupTopicPartitions{asked},
		confluent.SetAdminRequestTimeout(adminTimeout))
	switch {
	case isCode(err, confluent.ErrGroupIDNotFound):
		return offsets, nil
	case err != nil:
		return nil, fmt.Errorf("list offsets of group %s: %w", g.cfg.GroupID, err)
	}
	for _, of := range found.ConsumerGroupsTopicPartitions {
		for _, at := range of.Partitions {
			if at.Error != nil {
				return nil, fmt.Errorf("offset of group %s in %s/%d: %w", g.cfg.GroupID, g.cfg.Topic, at.Partition, at.Error)
			}
			if at.Offset >= 0 {
				offsets[at.Partition] = int64(at.Offset)
			}
		}
	}
	return offsets, nil
}
