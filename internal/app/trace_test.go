package app_test

import (
	"maps"
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
	inEveryStore(t, testTheProducersTraceReachesTheProvider)
}

func testTheProducersTraceReachesTheProvider(t *testing.T, offsets string) {
	t.Helper()
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	t.Run("with a span of our own where spans are exported", func(t *testing.T) {
		t.Parallel()
		collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(collector.Close)
		sent := traced(t, offsets, "00-"+trace+"-"+span+"-01", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_METRICS_EXPORTER": "none",
		})
		require.Regexp(t, "^00-"+trace+"-[0-9a-f]{16}-01$", sent.Get("traceparent"))
		require.NotContains(t, sent.Get("traceparent"), span)
	})
	t.Run("unchanged where they are not", func(t *testing.T) {
		t.Parallel()
		sent := traced(t, offsets, "00-"+trace+"-"+span+"-01", nil)
		require.Equal(t, "00-"+trace+"-"+span+"-01", sent.Get("traceparent"))
		require.Equal(t, "Bearer sesame", sent.Get("Authorization"))
		require.Equal(t, "application/json", sent.Get("Content-Type"))
	})
}

// traced charges an event that came with the trace context, and returns the headers that the provider got.
func traced(t *testing.T, offsets, traceparent string, env map[string]string) http.Header {
	t.Helper()
	w := setupIn(t, offsets, 1, paymenttest.Faults{})
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
	r.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte(traceparent)}}
	w.produce(r)
	all := map[string]string{"PAYMENT_URL": spy.URL, "PAYMENT_API_KEY": "sesame"}
	maps.Copy(all, env)
	w.start(all)
	w.settled()

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, seen, 1)
	return seen[o.id.String()]
}

func TestLogsHoldNoPayloadNoCustomerAndNoSecret(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testLogsHoldNoPayloadNoCustomerAndNoSecret)
}

func testLogsHoldNoPayloadNoCustomerAndNoSecret(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 1, mustFaults(t, "400=1@order:1"))
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
