//go:build apache

package kafka_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/billing/internal/sandbox/apache"
)

// sessionTimeout is what the brokers under test accept.
const sessionTimeout = 6 * time.Second

// brokersVar names brokers that run already; without it the tests start one.
const brokersVar = "BILLING_TEST_KAFKA_BROKERS"

func TestMain(m *testing.M) {
	os.Exit(withBroker(m.Run))
}

// withBroker runs the tests while an Apache Kafka is up.
func withBroker(run func() int) int {
	if os.Getenv(brokersVar) != "" {
		return run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	broker, err := apache.Start(ctx, apache.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start Apache Kafka:", err)
		return 1
	}
	defer func() {
		if err := broker.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "stop Apache Kafka:", err)
		}
	}()
	if err := os.Setenv(brokersVar, strings.Join(broker.Addrs(), ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// brokersUnderTest returns the brokers that all tests share.
func brokersUnderTest(tb testing.TB) []string {
	tb.Helper()
	return strings.Split(os.Getenv(brokersVar), ",")
}
