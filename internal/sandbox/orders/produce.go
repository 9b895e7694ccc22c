package orders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// maxBuffered bounds the records on their way; a full buffer holds up the walk.
	maxBuffered = 10_000
	// linger lets batches fill when there is no rate limit.
	linger = 5 * time.Millisecond
	// metadataMinAge is the pause before a producer looks again for a leader that is gone; 5 s by default.
	metadataMinAge = 100 * time.Millisecond
	// minPause is the shortest sleep of a rate limit: timers are not finer than that.
	minPause = time.Millisecond
	// topicTimeout bounds the creation of a topic.
	topicTimeout = 30 * time.Second
)

// ProduceOptions shape the way of a plan to the broker.
type ProduceOptions struct {
	// Rate is in records per second; 0: as fast as the broker takes them.
	Rate float64
	// Progress is called after each acknowledged record with the number so far, from one goroutine at a time. It must be quick.
	Progress func(acknowledged int)
	// Hold is called before each record is sent, with its number from 0. It may wait; its error ends the walk. Nil: nothing is held back.
	Hold func(ctx context.Context, record int) error
	// Client are further options of the client; they win over the package's own.
	Client []kgo.Opt
}

// Produce sends a plan to a topic, idempotently and acknowledged by all replicas, and returns how many records were acknowledged: all of them, or with an
// error fewer. It waits for a broker that is away as long as ctx lasts.
func Produce(ctx context.Context, brokers []string, topic string, plan *Plan, options ProduceOptions) (int, error) {
	if options.Rate < 0 {
		return 0, fmt.Errorf("produce orders: rate %v: below zero", options.Rate)
	}

	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), // and idempotent, by default
		kgo.MaxBufferedRecords(maxBuffered), kgo.ProducerLinger(linger), kgo.MetadataMinAge(metadataMinAge),
	}, options.Client...)...)
	if err != nil {
		return 0, fmt.Errorf("produce orders: %w", err)
	}
	defer client.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	t := &tally{progress: options.Progress, fail: cancel}
	sendErr := send(ctx, client, plan, options, t)
	flushErr := client.Flush(ctx)

	acknowledged, err := t.result()
	if err = cmp.Or(err, sendErr, flushErr); err != nil {
		return acknowledged, fmt.Errorf("produce orders to %s: %d of %d records acknowledged: %w", topic, acknowledged, plan.expected.Records, err)
	}

	return acknowledged, nil
}

// send walks the plan, no faster than the options allow, until its end or that of ctx.
func send(ctx context.Context, client *kgo.Client, plan *Plan, options ProduceOptions, t *tally) error {
	start, sent := time.Now(), 0

	for r := range plan.Records() {
		if options.Hold != nil {
			if err := options.Hold(ctx, sent); err != nil {
				return err
			}
		}

		if options.Rate > 0 {
			due := start.Add(time.Duration(float64(sent) / options.Rate * float64(time.Second)))
			if err := sleepUntil(ctx, due); err != nil {
				return err
			}
		}

		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		client.Produce(ctx, toKafka(r), t.promise)

		sent++
	}

	return nil
}

func sleepUntil(ctx context.Context, due time.Time) error {
	pause := time.Until(due)
	if pause < minPause {
		return nil
	}

	timer := time.NewTimer(pause)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func toKafka(r Record) *kgo.Record {
	rec := &kgo.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}

	return rec
}

// tally counts the acknowledgements. The first failure ends the run: what comes after it would be a gap.
type tally struct {
	progress func(int)
	fail     context.CancelCauseFunc

	mu           sync.Mutex
	acknowledged int
	err          error
}

func (t *tally) promise(_ *kgo.Record, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if err != nil {
		if t.err == nil {
			t.err = err
			t.fail(err)
		}

		return
	}

	t.acknowledged++

	if t.progress != nil {
		t.progress(t.acknowledged)
	}
}

func (t *tally) result() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.acknowledged, t.err
}

// EnsureTopic creates a topic with the broker's default replication. One that exists is left as it is.
func EnsureTopic(ctx context.Context, brokers []string, topic string, partitions int32) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()

	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	defer client.Close()

	const defaultReplication = -1

	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, defaultReplication, nil, topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}

	return nil
}
