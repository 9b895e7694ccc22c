package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
)

func TestTelemetry(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	reader := sdkmetric.NewManualReader()
	now := Status{Partitions: []PartitionStatus{
		{Partition: 1, Queued: 3, Lag: 40},
		{Partition: 2, Queued: 0, Lag: unknown},
	}}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	m, err := newTelemetry(Telemetry{
		Tracers: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), Meters: meters,
	}, "orders.confirmed", "billing", func() Status { return now })
	require.NoError(t, err)

	records := make([]domain.Record, maxLinks+20)
	for i := range records {
		records[i].Coordinates = domain.Coordinates{Topic: "orders.confirmed", Partition: 1, Offset: int64(100 + i)}
		parent := fmt.Sprintf("00-%032x-%016x-01", i+1, i+1)
		records[i].Headers = []domain.Header{{Key: "traceparent", Value: []byte(parent)}}
	}
	records[0].Headers[0].Value = []byte{0xff, 0}
	records[1].Headers = nil

	var inside trace.SpanContext
	require.NoError(t, m.batch(t.Context(), domain.SystemClock{}, records, func(ctx context.Context) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	}))
	cause := errors.New("no database")
	require.ErrorIs(t, m.batch(t.Context(), domain.SystemClock{}, records[:1], func(context.Context) error {
		return cause
	}), cause)
	m.rebalanced(t.Context(), "lost", 2)
	m.commitFailed(t.Context())
	m.maxPollExceeded(t.Context())

	ended := spans.Ended()
	require.Len(t, ended, 2)
	require.Equal(t, "process orders.confirmed", ended[0].Name())
	require.Equal(t, trace.SpanKindConsumer, ended[0].SpanKind())
	require.Equal(t, ended[0].SpanContext(), inside)
	require.Len(t, ended[0].Links(), maxLinks, "bounded, and only valid ones")
	require.Equal(t, fmt.Sprintf("%032x", 3), ended[0].Links()[0].SpanContext.TraceID().String())
	require.Equal(t, codes.Error, ended[1].Status().Code)
	require.Empty(t, ended[1].Links())

	require.Equal(t, map[string]float64{
		"billing.kafka.records":           float64(len(records)),
		"billing.kafka.batch.size":        float64(len(records) + 1),
		"billing.kafka.rebalances":        2,
		"billing.kafka.commit.errors":     1,
		"billing.kafka.max_poll_exceeded": 1,
		"billing.kafka.lag":               40,
		"billing.kafka.queue.records":     3,
	}, collect(t, reader))
	require.NoError(t, m.close())
	require.NotContains(t, collect(t, reader), "billing.kafka.lag", "a closed consumer is not asked")
	require.NoError(t, meters.Shutdown(t.Context()))
}

// A process that exports nothing must not pay for describing its batches.
func TestTelemetryThatNobodyRecordsAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	m, err := newTelemetry(Telemetry{}, "orders.confirmed", "billing", func() Status { return Status{} })
	require.NoError(t, err)
	records := make([]domain.Record, 256)
	for i := range records {
		parent := fmt.Sprintf("00-%032x-%016x-01", i+1, i+1)
		records[i].Headers = []domain.Header{{Key: "traceparent", Value: []byte(parent)}}
	}
	run := func(context.Context) error { return nil }
	ctx := t.Context()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		_ = m.batch(ctx, domain.SystemClock{}, records, run)
	}), 1.0, "the span's context")
}

// collect sums up every metric over its attributes; durations are left out.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var found metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &found))
	sums := map[string]float64{}
	for _, scope := range found.ScopeMetrics {
		for _, metric := range scope.Metrics {
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					sums[metric.Name] += float64(point.Value)
				}
			case metricdata.Gauge[int64]:
				for _, point := range data.DataPoints {
					sums[metric.Name] += float64(point.Value)
				}
			case metricdata.Histogram[int64]:
				for _, point := range data.DataPoints {
					sums[metric.Name] += float64(point.Sum)
				}
			}
		}
	}
	return sums
}

func TestCarrierContinuesATrace(t *testing.T) {
	t.Parallel()
	headers := []domain.Header{
		{Key: "traceparent", Value: []byte("old")},
		{Key: "a", Value: nil},
		{Key: "traceparent", Value: []byte("older")},
	}
	kept := headers
	c := carrier{&headers}
	require.Equal(t, "older", c.Get("traceparent"))
	require.Empty(t, c.Get("missing"))
	sent := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	})
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(t.Context(), sent), c)
	require.Equal(t, []string{"a", "traceparent"}, c.Keys())
	got := propagation.TraceContext{}.Extract(t.Context(), c)
	require.Equal(t, sent, trace.SpanContextFromContext(got))
	require.Equal(t, "old", string(kept[0].Value), "the record's own headers are left alone")
}
