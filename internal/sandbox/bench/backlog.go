package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/orders"
)

const (
	// duplicates is the share of the records that are duplicates.
	duplicates = 0.1
	// ordersApart keeps the orders of one load apart from those of the next.
	ordersApart = 10_000_000
)

// load is a topic full of records, or one that is filled while billing runs.
type load struct {
	topic      string
	partitions int32
	plan       *orders.Plan
	expected   orders.Expected
	poison     poison
}

// newLoad makes a topic and plans its records.
func (w *World) newLoad(ctx context.Context, records int, partitions int32) (*load, error) {
	n := w.next()
	plan, err := orders.Generate(records, orders.Options{
		Seed: uint64(n), Duplicates: duplicates, Traced: true, FirstOrderID: int64(n)*ordersApart + 1,
	})
	if err != nil {
		return nil, err
	}
	l := &load{topic: fmt.Sprintf("orders-%d", n), partitions: partitions, plan: plan, expected: plan.Expected()}
	return l, orders.EnsureTopic(ctx, strings.Split(w.brokers, ","), l.topic, partitions)
}

// backlog makes a topic and fills it.
func (w *World) backlog(ctx context.Context, records int, partitions int32) (*load, error) {
	l, err := w.newLoad(ctx, records, partitions)
	if err != nil {
		return nil, err
	}
	_, err = orders.Produce(ctx, strings.Split(w.brokers, ","), l.topic, l.plan, orders.ProduceOptions{})
	return l, err
}

// trickle sends the records one by one at a rate and returns when each order was first handed to the
// client, which does not wait for company.
func (w *World) trickle(ctx context.Context, l *load, rate float64) (map[int64]time.Time, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(w.brokers, ",")...), kgo.DefaultProduceTopic(l.topic), kgo.ProducerLinger(0))
	if err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	defer client.Close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	sent := make(map[int64]time.Time, l.expected.Unique)
	began, n := time.Now(), 0
	for r := range l.plan.Records() {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(float64(n)/rate*float64(time.Second))))); err != nil {
			return nil, err
		}
		record := &kgo.Record{Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if _, again := sent[r.OrderID]; !again {
			sent[r.OrderID] = time.Now()
		}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				fail(err)
			}
		})
		n++
	}
	if err := client.Flush(ctx); err != nil {
		return nil, fmt.Errorf("produce: %w", context.Cause(ctx))
	}
	return sent, nil
}

// sleep waits, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
