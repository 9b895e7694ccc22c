//go:build !apache

package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"example.com/billing/internal/sandbox/broker"
)

// sessionTimeout is what the brokers under test accept.
const sessionTimeout = 2 * time.Second

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// After a fatal error the client is left open on purpose, in one test.
		goleak.IgnoreAnyFunction("github.com/confluentinc/confluent-kafka-go/v2/kafka.(*handle).pollLogEvents"))
}

// brokersUnderTest starts an embedded broker for the test.
func brokersUnderTest(tb testing.TB) []string {
	tb.Helper()
	b, err := broker.Start(broker.Options{})
	require.NoError(tb, err)
	tb.Cleanup(b.Close)
	return b.Addrs()
}

// fakeBroker is for tests that have it answer wrongly: it has nobody's requests but the test's.
func fakeBroker(tb testing.TB, options ...kfake.Opt) *kfake.Cluster {
	tb.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}, options...)...)
	require.NoError(tb, err)
	tb.Cleanup(cluster.Close)
	return cluster
}
