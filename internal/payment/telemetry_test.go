package payment_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/payment/paymenttest"
)

const (
	producerTrace = "0af7651916cd43dd8448eb211c80319c"
	producerSpan  = "b7ad6b7169203331"
)

type observed struct {
	client *payment.Client
	spans  *tracetest.SpanRecorder
	tracer *trace.TracerProvider
	reader *metric.ManualReader
}

func observe(t *testing.T, faults string) observed {
	t.Helper()
	provider := newProvider(t, faults, paymenttest.Options{})
	o := observed{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	o.tracer = trace.NewTracerProvider(trace.WithSpanProcessor(o.spans))
	var err error
	o.client, err = payment.New(payment.Config{URL: provider.URL(), APIKey: "hunter2", Backoff: time.Millisecond},
		payment.Tools{Tracer: o.tracer, Meter: metric.NewMeterProvider(metric.WithReader(o.reader))})
	require.NoError(t, err)
	t.Cleanup(o.client.Close)
	return o
}

func TestEachAttemptHasASpanInTheProducersTrace(t *testing.T) {
	t.Parallel()
	o := observe(t, "503-after=next1")
	request := newRequest(t, 1)
	request.TraceParent = "00-" + producerTrace + "-" + producerSpan + "-01"
	ctx, batch := o.tracer.Tracer("test").Start(t.Context(), "batch")
	require.Equal(t, domain.Captured, o.client.Charge(ctx, request).Kind)
	batch.End()

	ended := o.spans.Ended()
	require.Len(t, ended, 3)
	for i, want := range []struct {
		answer string
		status int64
		code   codes.Code
	}{{"unknown", 503, codes.Error}, {"captured", 200, codes.Unset}} {
		span := ended[i]
		require.Equal(t, producerTrace, span.SpanContext().TraceID().String())
		require.Equal(t, producerSpan, span.Parent().SpanID().String())
		require.Equal(t, api.SpanKindClient, span.SpanKind())
		require.Equal(t, batch.SpanContext(), span.Links()[0].SpanContext)
		require.Equal(t, want.code, span.Status().Code)
		got := map[attribute.Key]attribute.Value{}
		for _, kv := range span.Attributes() {
			got[kv.Key] = kv.Value
		}
		require.Equal(t, want.answer, got["billing.answer"].AsString())
		require.Equal(t, want.status, got["http.response.status_code"].AsInt64())
		require.Equal(t, "POST", got["http.request.method"].AsString())
		require.Equal(t, "127.0.0.1", got["server.address"].AsString())
		require.EqualValues(t, i, got["http.request.resend_count"].AsInt64())
		text := fmt.Sprint(span.Attributes())
		for _, secret := range []string{"hunter2", request.EventID.String(), "10.50"} {
			require.NotContains(t, text, secret)
		}
	}
}

func TestASpanOfTheSameTraceStaysTheParent(t *testing.T) {
	t.Parallel()
	o := observe(t, "")
	ctx, around := o.tracer.Tracer("test").Start(context.Background(), "event")
	request := newRequest(t, 1)
	request.TraceParent = "00-" + around.SpanContext().TraceID().String() + "-" + producerSpan + "-01"
	o.client.Charge(ctx, request)
	around.End()
	require.Equal(t, around.SpanContext().SpanID(), o.spans.Ended()[0].Parent().SpanID())
	require.Empty(t, o.spans.Ended()[0].Links())
}

func TestMetricsTellAttemptsByAnswer(t *testing.T) {
	t.Parallel()
	o := observe(t, "503-after=next1")
	o.client.Charge(t.Context(), newRequest(t, 1))
	var collected metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &collected))
	attempts, durations := map[string]int64{}, map[string]uint64{}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			require.Equal(t, "billing.payment.duration", m.Name)
			for _, point := range data.DataPoints {
				answer, _ := point.Attributes.Value("billing.answer")
				durations[answer.AsString()] = point.Count
			}
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				if m.Name == "billing.payment.in_flight" {
					require.Zero(t, point.Value)
					continue
				}
				require.Equal(t, "billing.payment.attempts", m.Name)
				answer, _ := point.Attributes.Value("billing.answer")
				attempts[answer.AsString()] = point.Value
			}
		}
	}
	require.Equal(t, map[string]int64{"unknown": 1, "captured": 1}, attempts)
	require.Equal(t, map[string]uint64{"unknown": 1, "captured": 1}, durations)
}
