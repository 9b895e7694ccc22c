package kafka

import (
	"context"
	"errors"
	"fmt"

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
