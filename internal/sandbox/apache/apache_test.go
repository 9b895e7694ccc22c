//go:build apache

package apache_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/apache"
)

const (
	records    = 1000
	partitions = 3
	limit      = 60 * time.Second
	ownerVar   = "APACHE_TEST_OWNER"
)

// TestMain lets the test binary play the owner of a broker in a process of its own, which TestAnOwnerKilled kills.
func TestMain(m *testing.M) {
	if os.Getenv(ownerVar) != "" {
		owner()
	}

	os.Exit(m.Run())
}

// owner starts a broker, says its pid and hangs until it is killed.
func owner() {
	b, err := apache.Start(context.Background(), apache.Options{})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}

	fmt.Println(b.PID(), b.Dir())
	select {}
}

func start(t *testing.T, options apache.Options) *apache.Broker {
	t.Helper()

	b, err := apache.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop(context.Background())) })

	return b
}

func client(t *testing.T, b *apache.Broker, options ...kgo.Opt) *kgo.Client {
	t.Helper()

	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)

	return c
}

func createTopic(t *testing.T, b *apache.Broker, topic string) {
	t.Helper()

	_, err := kadm.NewClient(client(t, b)).CreateTopic(t.Context(), partitions, 1, nil, topic)
	require.NoError(t, err)
}

func batch(topic, prefix string, n int) []*kgo.Record {
	rs := make([]*kgo.Record, n)
	for i := range rs {
		rs[i] = &kgo.Record{Topic: topic, Key: []byte(strconv.Itoa(i)), Value: fmt.Appendf(nil, "%s-%d", prefix, i)}
	}

	return rs
}

// consume reads until n records came and returns how often each value did.
func consume(t *testing.T, b *apache.Broker, topic string, n int, options ...kgo.Opt) map[string]int {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	c := client(t, b, append(options, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	seen := map[string]int{}

	for got := 0; got < n; {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; got++ })
	}

	return seen
}

func requireEachOnce(t *testing.T, seen map[string]int, prefix string, n int) {
	t.Helper()
	require.Len(t, seen, n)

	for i := range n {
		require.Equal(t, 1, seen[fmt.Sprintf("%s-%d", prefix, i)])
	}
}

func TestBroker(t *testing.T) {
	t.Parallel()

	b := start(t, apache.Options{})

	t.Run("every record produced is consumed once", func(t *testing.T) {
		t.Parallel()
		createTopic(t, b, "plain")
		require.NoError(t, client(t, b).ProduceSync(t.Context(), batch("plain", "v", records)...).FirstErr())
		requireEachOnce(t, consume(t, b, "plain", records), "v", records)
	})

	t.Run("a member of a group may ask for a short session", func(t *testing.T) {
		t.Parallel()
		createTopic(t, b, "grouped")
		require.NoError(t, client(t, b).ProduceSync(t.Context(), batch("grouped", "v", records)...).FirstErr())

		session := []kgo.Opt{kgo.ConsumerGroup("g"), kgo.SessionTimeout(apache.DefaultMinSessionTimeout * 3), kgo.HeartbeatInterval(50 * time.Millisecond)}
		requireEachOnce(t, consume(t, b, "grouped", records, session...), "v", records)
	})

	t.Run("an aborted transaction is invisible to read_committed", func(t *testing.T) {
		t.Parallel()
		createTopic(t, b, "transactions")

		p := client(t, b, kgo.TransactionalID("tx"))
		transaction(t, p, "aborted", kgo.TryAbort)
		transaction(t, p, "committed", kgo.TryCommit)

		committed := kgo.FetchIsolationLevel(kgo.ReadCommitted())
		requireEachOnce(t, consume(t, b, "transactions", records, committed), "committed", records)
		// The aborted ones are there, and it is the isolation level that hides them.
		require.Len(t, consume(t, b, "transactions", 2*records), 2*records)
	})

	t.Run("a value of 2 MiB is taken", func(t *testing.T) {
		t.Parallel()
		createTopic(t, b, "large")

		value := bytes.Repeat([]byte("x"), 2<<20)
		p := client(t, b, kgo.ProducerBatchMaxBytes(apache.MaxMessageBytes), kgo.ProducerBatchCompression(kgo.NoCompression()))
		require.NoError(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "large", Value: value}).FirstErr())
	})

	t.Run("a topic nobody created does not appear by itself", func(t *testing.T) {
		t.Parallel()

		p := client(t, b, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(3))
		require.Error(t, p.ProduceSync(t.Context(), batch("absent", "v", 1)...).FirstErr())
	})
}

func transaction(t *testing.T, p *kgo.Client, prefix string, end kgo.TransactionEndTry) {
	t.Helper()
	require.NoError(t, p.BeginTransaction())
	require.NoError(t, p.ProduceSync(t.Context(), batch("transactions", prefix, records)...).FirstErr())
	require.NoError(t, p.EndTransaction(t.Context(), end))
}

func TestDataAndAddressSurvive(t *testing.T) {
	t.Parallel()

	b := start(t, apache.Options{})
	addrs := b.Addrs()

	createTopic(t, b, "kept")
	require.NoError(t, client(t, b).ProduceSync(t.Context(), batch("kept", "v", records)...).FirstErr())

	// An orderly restart.
	require.NoError(t, b.Restart(t.Context()))
	require.Equal(t, addrs, b.Addrs())
	requireEachOnce(t, consume(t, b, "kept", records), "v", records)

	// A crash.
	require.NoError(t, b.Kill())
	<-b.Done()
	require.NoError(t, b.Restart(t.Context()))
	require.Equal(t, addrs, b.Addrs())
	requireEachOnce(t, consume(t, b, "kept", records), "v", records)

	dir := b.Dir()
	require.NoError(t, b.Stop(t.Context()))
	require.NoDirExists(t, dir)
}

func TestAnotherBrokerFindsTheDataOfAGivenFolder(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	first := start(t, apache.Options{Dir: dir})
	createTopic(t, first, "kept")
	require.NoError(t, client(t, first).ProduceSync(t.Context(), batch("kept", "v", records)...).FirstErr())
	require.NoError(t, first.Stop(t.Context()))

	second := start(t, apache.Options{Dir: dir})
	requireEachOnce(t, consume(t, second, "kept", records), "v", records)
}
