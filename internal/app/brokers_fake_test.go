//go:build !apache

package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/broker"
	"example.com/billing/internal/store/storetest"
)

// sessionTimeout is what the brokers under test accept.
const sessionTimeout = "2s"

func TestMain(m *testing.M) {
	actAsBilling()
	storetest.Main(m)
}

// brokersUnderTest starts an embedded broker for the test.
func brokersUnderTest(t testing.TB) []string {
	t.Helper()
	b, err := broker.Start(broker.Options{})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b.Addrs()
}
