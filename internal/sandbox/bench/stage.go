package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"example.com/billing/internal/sandbox/process"
)

// Stage is a backlog, a database and a consumer group, for a billing that somebody else runs. Nothing of it
// happens in this process, so that a profile of it shows billing alone.
type Stage struct {
	// Environ are billing's settings.
	Environ []string

	world        *World
	topic, group string
	database     string
	unique       int
}

// NewStage makes a stage; faults are as for `sandbox provider --fault`. Close removes it.
func (w *World) NewStage(ctx context.Context, records int, faults string) (*Stage, error) {
	n := w.next()
	s := &Stage{
		world: w, topic: fmt.Sprintf("orders-%d", n), group: fmt.Sprintf("billing-%d", n), database: fmt.Sprintf("bench-%d", n),
		unique: records - int(float64(records)*duplicates),
	}
	s.Environ = []string{
		"KAFKA_BROKERS=" + w.brokers, "KAFKA_TOPIC=" + s.topic, "KAFKA_GROUP_ID=" + s.group,
		"DATABASE_URL=" + w.postgres.URL(s.database), "PAYMENT_URL=" + w.provider.url,
	}
	if err := w.provider.prepare(ctx, faults); err != nil {
		return nil, err
	}
	if err := w.postgres.CreateDatabase(ctx, s.database); err != nil {
		return nil, err
	}
	_, err := process.Run(ctx, process.Spec{
		Path: w.options.Sandbox, Env: environ(w.options.Environ),
		Args: []string{
			"orders", "--brokers", w.brokers, "--topic", s.topic, "--partitions", strconv.Itoa(int(w.options.Partitions)),
			"--records", strconv.Itoa(records), "--duplicates", strconv.FormatFloat(duplicates, 'g', -1, 64), "--seed", strconv.Itoa(n),
		},
	})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// Await waits until everything is charged, and returns charges per second. Ended is closed when billing has ended, which it must not.
func (s *Stage) Await(ctx context.Context, ended <-chan struct{}) (rate float64, err error) {
	err = await(ctx, runLimit, donePoll, "everything charged", func() (bool, error) {
		select {
		case <-ended:
			return false, errors.New("billing ended by itself")
		default:
		}
		meter, err := s.world.provider.meter(ctx)
		if err != nil || meter.Answered < int64(s.unique) {
			return false, err
		}
		return s.world.settled(ctx, s.topic, s.group, s.database)
	})
	if err != nil {
		return 0, err
	}
	return s.judge(ctx)
}

func (s *Stage) judge(ctx context.Context) (float64, error) {
	meter, err := s.world.provider.meter(ctx)
	if err != nil {
		return 0, err
	}
	commits, err := s.world.books.commits(ctx, s.database, s.topic)
	if err != nil {
		return 0, err
	}
	if len(commits) != s.unique || meter.Posts != int64(s.unique) {
		return 0, fmt.Errorf("%d charges by %d requests, want %d", len(commits), meter.Posts, s.unique)
	}
	return wallRate(commits, meter), nil
}

// Close removes the database.
func (s *Stage) Close(ctx context.Context) error {
	return s.world.books.drop(context.WithoutCancel(ctx), s.database)
}
