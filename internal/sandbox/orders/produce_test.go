package orders_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/billing/internal/sandbox/broker"
	"example.com/billing/internal/sandbox/orders"
)

const (
	topic = "orders.confirmed"
	limit = 30 * time.Second
)

func startBroker(t *testing.T) *broker.Broker {
	t.Helper()

	b, err := broker.Start(broker.Options{Topics: map[string]int32{topic: 6}})
	require.NoError(t, err)
	t.Cleanup(b.Close)

	return b
}

// consume reads n records, in the order of each partition.
func consume(t *testing.T, b *broker.Broker, n int) []*kgo.Record {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)

	defer c.Close()

	var got []*kgo.Record

	for len(got) < n {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		got = append(got, fetches.Records()...)
	}

	return got
}

func fromKafka(r *kgo.Record) orders.Record {
	rec := orders.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, orders.Header{Key: h.Key, Value: h.Value})
	}

	return rec
}

func TestTheTopicHoldsThePlan(t *testing.T) {
	t.Parallel()

	b := startBroker(t)
	// A leader that is away for a moment must neither lose nor double a record.
	fault := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: 2})
	plan := generate(t, 5000, orders.Options{Duplicates: 0.2, Traced: true})

	calls := 0
	acknowledged, err := orders.Produce(t.Context(), b.Addrs(), topic, plan, orders.ProduceOptions{Progress: func(n int) {
		calls++
		require.Equal(t, calls, n)
	}})
	require.NoError(t, err)
	require.Equal(t, 5000, acknowledged)
	require.Equal(t, 5000, calls)
	require.Equal(t, 2, fault.Hits())

	want := map[string][]orders.Record{} // per key, in order
	for r := range plan.Records() {
		want[string(r.Key)] = append(want[string(r.Key)], r)
	}

	for _, r := range consume(t, b, 5000) {
		rest := want[string(r.Key)]
		require.NotEmpty(t, rest, "order %s came too often", r.Key)
		require.True(t, rest[0].Equal(fromKafka(r)), "order %s: %s", r.Key, r.Value)
		want[string(r.Key)] = rest[1:]
	}

	ends, err := kadm.NewClient(newClient(t, b)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)

	total := int64(0)
	ends.Each(func(o kadm.ListedOffset) {
		require.Positive(t, o.Offset, "keys reach every partition")
		total += o.Offset
	})
	require.EqualValues(t, 5000, total)
}

func newClient(t *testing.T, b *broker.Broker) *kgo.Client {
	t.Helper()

	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}

func TestARateIsNotExceeded(t *testing.T) {
	t.Parallel()

	b := startBroker(t)
	start := time.Now()
	_, err := orders.Produce(t.Context(), b.Addrs(), topic, generate(t, 101, orders.Options{}), orders.ProduceOptions{Rate: 200})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 498*time.Millisecond, "100 intervals of 5 ms, less what a timer may be off")
}

func TestCancellingEndsTheRunWithWhatWasAcknowledged(t *testing.T) {
	t.Parallel()

	b := startBroker(t)
	ctx, cancel := context.WithCancel(t.Context())

	// At this rate the whole plan would take 17 minutes.
	acknowledged, err := orders.Produce(ctx, b.Addrs(), topic, generate(t, 100_000, orders.Options{}), orders.ProduceOptions{
		Rate:     100,
		Progress: func(int) { cancel() },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "of 100000 records acknowledged")
	require.Positive(t, acknowledged)
	require.Less(t, acknowledged, 1000)
}

func TestARefusedRecordEndsTheRun(t *testing.T) {
	t.Parallel()

	b := startBroker(t)
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1})

	// To the end it would take 17 minutes.
	acknowledged, err := orders.Produce(t.Context(), b.Addrs(), topic, generate(t, 100_000, orders.Options{}), orders.ProduceOptions{Rate: 100})
	require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
	require.Zero(t, acknowledged)
}

func TestATopicIsEnsuredOnce(t *testing.T) {
	t.Parallel()

	b := startBroker(t)
	require.NoError(t, orders.EnsureTopic(t.Context(), b.Addrs(), "new", 4))
	require.NoError(t, orders.EnsureTopic(t.Context(), b.Addrs(), "new", 9), "one that exists is left as it is")

	topics, err := kadm.NewClient(newClient(t, b)).ListTopics(t.Context(), "new")
	require.NoError(t, err)
	require.Len(t, topics["new"].Partitions, 4)

	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.TopicAuthorizationFailed})
	err = orders.EnsureTopic(t.Context(), b.Addrs(), "refused", 1)
	require.ErrorIs(t, err, kerr.TopicAuthorizationFailed)
	require.ErrorContains(t, err, "create topic refused")
}
