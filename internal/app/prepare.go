package app

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/billing/internal/kafka"
)

// Bounds of the start and the end.
const (
	startTimeout = 2 * time.Minute  // for each neighbour to come up
	tryTimeout   = 90 * time.Second // for one try, a migration by another instance included
	closeTimeout = 10 * time.Second // for closing every part
)

// prepare waits until the database and the brokers are there, in that order, and
// brings schema and topics up.
func (a *App) prepare(ctx context.Context) error {
	return firstError(
		func() error { return a.eventually(ctx, "database", a.prepareDatabase) },
		func() error { return a.eventually(ctx, "kafka", a.prepareTopics) },
	)
}

func (a *App) prepareDatabase(ctx context.Context) error {
	if err := a.store.CheckVersion(ctx); err != nil {
		return err
	}
	if a.settings.Database.MigrateOnStart {
		if err := migrateOnStart(ctx, a.settings.Database.URL, a.log); err != nil {
			return err
		}
	}
	return a.store.CheckSchema(ctx)
}

func (a *App) prepareTopics(ctx context.Context) error {
	specs := []kafka.TopicSpec{{Name: a.settings.Kafka.Topic}}
	for _, topic := range a.settings.topics() {
		specs = append(specs, kafka.TopicSpec{Name: topic})
	}
	return kafka.EnsureTopics(ctx, a.settings.kafka(), a.log, specs)
}

// eventually tries until it succeeds, ctx ends or the start takes too long.
func (a *App) eventually(ctx context.Context, what string, try func(context.Context) error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return struct{}{}, try(ctx)
	},
		backoff.WithBackOff(backoff.NewExponentialBackOff()),
		backoff.WithMaxElapsedTime(startTimeout),
		backoff.WithNotify(func(err error, next time.Duration) {
			a.log.WarnContext(ctx, "waiting for a neighbour", "neighbour", what, "error", err, "next_try_in", next.String())
		}),
	)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
