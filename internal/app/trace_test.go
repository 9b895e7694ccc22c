package app_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
)

func TestTheProducersTraceReachesTheProvider(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	var mu sync.Mutex
	seen := map[string]http.Header{}
	spy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("Idempotency-Key")] = r.Header.Clone()
		mu.Unlock()
		w.provider.ServeHTTP(rw, r)
	}))
	t.Cleanup(spy.Close)

	o := newOrder(1)
	r := w.record(0, []byte(o.json()))
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	r.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-" + trace + "-00f067aa0ba902b7-01")}}
	w.produce(r)
	w.start(map[string]string{"PAYMENT_URL": spy.URL, "PAYMENT_API_KEY": "sesame"})
	w.settled()

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, seen, 1)
	sent := seen[o.id.String()]
	require.Regexp(t, "^00-"+trace+"-[0-9a-f]{16}-01$", sent.Get("traceparent"))
	require.NotContains(t, sent.Get("traceparent"), "00f067aa0ba902b7", "a span of our own")
	require.Equal(t, "Bearer sesame", sent.Get("Authorization"))
	require.Equal(t, "application/json", sent.Get("Content-Type"))
}

func TestLogsHoldNoPayloadNoCustomerAndNoSecret(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, mustFaults(t, "400=1@order:1"))
	o := newOrder(1)
	bad := w.record(0, []byte(`{"secretNote":"hush","customerId":424242`))
	w.produce(w.record(0, []byte(o.json())), bad)
	s := w.start(map[string]string{"PAYMENT_API_KEY": "sesame", "LOG_LEVEL": "debug", "ADMIN_TOKEN": "open-sesame", "ADMIN_INSECURE": "true"})
	w.eventually("both are parked", func() bool { return w.count(`SELECT count(*) FROM dead_letter`) == 2 })
	s.Stop()
	logs := s.Logs.String()
	require.Contains(t, logs, "dead letter")
	for _, secret := range []string{"sesame", "hush", "424242", "customerId", "10.50"} {
		require.NotContains(t, logs, secret)
	}
}
