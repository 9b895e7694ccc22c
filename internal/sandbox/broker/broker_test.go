package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/broker"
)

const (
	topic   = "orders"
	records = 1000
	limit   = 30 * time.Second
)

func start(t *testing.T, options broker.Options) *broker.Broker {
	t.Helper()

	b, err := broker.Start(options)
	require.NoError(t, err)
	t.Cleanup(b.Close)

	return b
}

func client(t *testing.T, b *broker.Broker, options ...kgo.Opt) *kgo.Client {
	t.Helper()

	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}

func produce(t *testing.T, b *broker.Broker) {
	t.Helper()

	rs := make([]*kgo.Record, records)
	for i := range rs {
		rs[i] = &kgo.Record{Topic: topic, Key: []byte(strconv.Itoa(i)), Value: fmt.Appendf(nil, "v-%d", i)}
	}

	require.NoError(t, client(t, b).ProduceSync(t.Context(), rs...).FirstErr())
}

// requireAll reads every record once.
func requireAll(t *testing.T, b *broker.Broker, options ...kgo.Opt) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	seen := map[string]int{}
	c := client(t, b, append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)

	for got := 0; got < records; {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; got++ })
	}

	for i := range records {
		require.Equal(t, 1, seen[fmt.Sprintf("v-%d", i)])
	}
}

func partitions(t *testing.T, b *broker.Broker) map[string]int {
	t.Helper()

	topics, err := kadm.NewClient(client(t, b)).ListTopics(t.Context())
	require.NoError(t, err)

	counts := map[string]int{}
	for name, detail := range topics {
		counts[name] = len(detail.Partitions)
	}

	return counts
}

func TestTopicsHaveTheirPartitions(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 6, "dlq": 1}})
	require.Equal(t, map[string]int{topic: 6, "dlq": 1}, partitions(t, b))
}

func TestEveryRecordIsConsumedOnceByAGroupWithAShortSession(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 3}})
	produce(t, b)
	requireAll(t, b, kgo.ConsumerGroup("g"), kgo.SessionTimeout(broker.DefaultMinSessionTimeout), kgo.HeartbeatInterval(20*time.Millisecond))
}

func TestASessionBelowTheMinimumIsRefused(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 1}, MinSessionTimeout: 5 * time.Second})

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	c := client(t, b, kgo.ConsumerGroup("g"), kgo.ConsumeTopics(topic), kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(100*time.Millisecond))
	require.ErrorContains(t, c.PollFetches(ctx).Err0(), "INVALID_SESSION_TIMEOUT")
}

func TestAValueOf2MiBIsTakenAndOneBeyondTheLimitIsNot(t *testing.T) {
	t.Parallel()

	b := start(t, broker.Options{Topics: map[string]int32{topic: 1}})
	c := client(t, b, kgo.ProducerBatchMaxBytes(2*broker.MaxMessageBytes), kgo.ProducerBatchCompression(kgo.NoCompression()))

	value := bytes.Repeat([]byte("x"), 2<<20)
	require.NoError(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr())

	value = bytes.Repeat(value, 2)
	require.ErrorContains(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(), "MESSAGE_TOO_LARGE")
}

func TestDataOnDiskOutlivesTheBroker(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	first := start(t, broker.Options{DataDir: dir, Topics: map[string]int32{topic: 3}})
	produce(t, first)
	requireAll(t, first)
	first.Close()

	// Back on its port, as clients expect it; a topic more is asked for.
	second := start(t, broker.Options{DataDir: dir, Port: port(t, first), Topics: map[string]int32{topic: 3, "dlq": 2}})
	require.Equal(t, first.Addrs(), second.Addrs())
	require.Equal(t, map[string]int{topic: 3, "dlq": 2}, partitions(t, second))
	requireAll(t, second)
}

func port(t *testing.T, b *broker.Broker) int {
	t.Helper()

	_, digits, err := net.SplitHostPort(b.Addrs()[0])
	require.NoError(t, err)
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)

	return n
}

func TestATakenPortIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()

	n := port(t, start(t, broker.Options{}))
	_, err := broker.Start(broker.Options{Port: n})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, strconv.Itoa(n))
}

func TestItListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()

	host, _, err := net.SplitHostPort(start(t, broker.Options{}).Addrs()[0])
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
}

func TestNothingExpiresUnlessAskedFor(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]struct {
		retention map[string]string
		gone      bool
	}{
		"records of a month ago are kept":            {},
		"the caller's setting wins over the default": {map[string]string{"log.retention.ms": "604800000"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			params := map[string]string{"log.segment.bytes": "1024"}
			maps.Copy(params, want.retention)

			b := start(t, broker.Options{Topics: map[string]int32{topic: 1}, Params: params})
			c := client(t, b)
			monthAgo := time.Now().AddDate(0, -1, 0)

			for range 50 {
				r := &kgo.Record{Topic: topic, Value: bytes.Repeat([]byte("x"), 200), Timestamp: monthAgo}
				require.NoError(t, c.ProduceSync(t.Context(), r).FirstErr())
			}

			b.Cluster().ApplyRetention()

			offsets, err := kadm.NewClient(c).ListStartOffsets(t.Context(), topic)
			require.NoError(t, err)
			first, _ := offsets.Lookup(topic, 0)
			require.Equal(t, want.gone, first.Offset > 0, "first offset %d", first.Offset)
		})
	}
}
