//go:build apache

package app_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/apache"
	"example.com/billing/internal/store/storetest"
)

// sessionTimeout is what the brokers under test accept.
const sessionTimeout = "6s"

// shared is the broker of this test binary. It ends with its parent, however
// that ends.
var shared struct { // one broker for all tests of the binary
	once   sync.Once
	broker *apache.Broker
	err    error
}

func TestMain(m *testing.M) {
	actAsBilling()
	storetest.Main(m, func() error {
		if shared.broker == nil {
			return nil
		}
		return shared.broker.Stop(context.Background())
	})
}

// brokersUnderTest returns the Apache Kafka that all tests share.
func brokersUnderTest(t testing.TB) []string {
	t.Helper()
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		shared.broker, shared.err = apache.Start(ctx, apache.Options{})
		if shared.err != nil {
			shared.err = fmt.Errorf("start Apache Kafka: %w", shared.err)
			fmt.Fprintln(os.Stderr, shared.err)
		}
	})
	require.NoError(t, shared.err)
	return shared.broker.Addrs()
}
