package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// topicsTimeout bounds each of the two questions of EnsureTopics.
const topicsTimeout = 15 * time.Second

// TopicSpec is a topic that has to be there.
type TopicSpec struct {
	Name string
	// Partitions for a created topic; 0: Config.TopicPartitions.
	Partitions int
	// Settings of a created topic, as the broker names them.
	Settings map[string]string
}

// EnsureTopics creates the topics that are missing, with the broker's default number of
// partitions and replicas unless stated otherwise. Existing ones stay as they
// are, and so does max.message.bytes: what a broker accepts is its operator's decision. With
// Config.CreateTopics false it does nothing. The error joins what failed, topic by topic. The
// client's own lines go to logger, at debug.
func EnsureTopics(ctx context.Context, cfg Config, logger *slog.Logger, specs []TopicSpec) error {
	if !cfg.CreateTopics || len(specs) == 0 {
		return nil
	}
	admin, free, err := cfg.asking(logger)
	if err != nil {
		return err
	}
	defer free()
	return cfg.asked(ensureTopics(ctx, admin, cfg, specs))
}

func ensureTopics(ctx context.Context, admin *confluent.AdminClient, cfg Config, specs []TopicSpec) error {
	missing, err := missingTopics(ctx, admin, cfg, specs)
	if err != nil || len(missing) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, topicsTimeout)
	defer cancel()
	results, err := admin.CreateTopics(ctx, missing,
		confluent.SetAdminRequestTimeout(topicsTimeout), confluent.SetAdminOperationTimeout(topicsTimeout))
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	var failed []error
	for _, result := range results {
		switch result.Error.Code() {
		case confluent.ErrNoError, confluent.ErrTopicAlreadyExists: // another instance was quicker
		default:
			failed = append(failed, fmt.Errorf("create topic %s: %w", result.Topic, result.Error))
		}
	}
	return errors.Join(failed...)
}

// missingTopics asks first: the right to create is not needed where nothing is missing.
func missingTopics(ctx context.Context, admin *confluent.AdminClient, cfg Config, specs []TopicSpec) (
	[]confluent.TopicSpecification, error,
) {
	names := make([]string, len(specs))
	wanted := make(map[string]TopicSpec, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
		wanted[spec.Name] = spec
	}
	ctx, cancel := context.WithTimeout(ctx, topicsTimeout)
	defer cancel()
	found, err := admin.DescribeTopics(ctx, confluent.NewTopicCollectionOfTopicNames(names),
		confluent.SetAdminRequestTimeout(topicsTimeout))
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	var missing []confluent.TopicSpecification
	var failed []error
	for _, topic := range found.TopicDescriptions {
		switch topic.Error.Code() {
		case confluent.ErrNoError:
		case confluent.ErrUnknownTopicOrPart:
			spec := wanted[topic.Name]
			partitions := cfg.TopicPartitions
			if spec.Partitions != 0 {
				partitions = spec.Partitions
			}
			missing = append(missing, confluent.TopicSpecification{
				Topic: spec.Name, NumPartitions: partitions,
				ReplicationFactor: cfg.TopicReplication, Config: spec.Settings,
			})
		default:
			failed = append(failed, fmt.Errorf("describe topic %s: %w", topic.Name, topic.Error))
		}
	}
	return missing, errors.Join(failed...)
}
