package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"example.com/billing/internal/domain"
)

const (
	scope = "example.com/billing/internal/kafka"
	// maxLinks bounds the links of a batch's span to the traces of its records.
	maxLinks = 128
)

// Telemetry is where traces and metrics go. A nil provider records nothing; a nil
// propagator is W3C trace context.
type Telemetry struct {
	Tracers    trace.TracerProvider
	Meters     metric.MeterProvider
	Propagator propagation.TextMapPropagator
}

type telemetry struct {
	topic      string
	group      string
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	span       string // name of a batch's span
	kind       []trace.SpanStartOption
	durable    []metric.RecordOption // of a batch that is
	failed     []metric.RecordOption // of one that is not

	records       metric.Int64Counter
	batchSize     metric.Int64Histogram
	batchDuration metric.Float64Histogram
	rebalances    metric.Int64Counter
	commitErrors  metric.Int64Counter
	tooSlow       metric.Int64Counter
	lag           metric.Int64ObservableGauge
	queued        metric.Int64ObservableGauge
	registration  metric.Registration
}

func newTelemetry(to Telemetry, topic, group string, status func() Status) (*telemetry, error) {
	if to.Tracers == nil {
		to.Tracers = tracenoop.NewTracerProvider()
	}
	if to.Meters == nil {
		to.Meters = metricnoop.NewMeterProvider()
	}
	if to.Propagator == nil {
		to.Propagator = propagation.TraceContext{}
	}
	t := &telemetry{topic: topic, group: group, tracer: to.Tracers.Tracer(scope), propagator: to.Propagator}
	// Made once, so that a batch allocates nothing for them.
	t.span, t.kind = "process "+topic, []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	t.durable = []metric.RecordOption{metric.WithAttributes(attribute.String("outcome", "durable"))}
	t.failed = []metric.RecordOption{metric.WithAttributes(attribute.String("outcome", "failed"))}
	meter := to.Meters.Meter(scope)
	var errs [9]error
	t.records, errs[0] = meter.Int64Counter("billing.kafka.records",
		metric.WithDescription("Records made durable."), metric.WithUnit("{record}"))
	t.batchSize, errs[1] = meter.Int64Histogram("billing.kafka.batch.size",
		metric.WithDescription("Records of one batch."), metric.WithUnit("{record}"),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
	t.batchDuration, errs[2] = meter.Float64Histogram("billing.kafka.batch.duration",
		metric.WithDescription("One run of a batch, from handing it over to its commit or failure."),
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30))
	t.rebalances, errs[3] = meter.Int64Counter("billing.kafka.rebalances",
		metric.WithDescription("Partitions assigned, revoked and lost."), metric.WithUnit("{partition}"))
	t.commitErrors, errs[4] = meter.Int64Counter("billing.kafka.commit.errors",
		metric.WithDescription("Offset commits that failed; they are tried again."), metric.WithUnit("{commit}"))
	t.tooSlow, errs[5] = meter.Int64Counter("billing.kafka.max_poll_exceeded",
		metric.WithDescription("Times the group gave our partitions away because the poll loop was not there."),
		metric.WithUnit("{event}"))
	t.lag, errs[6] = meter.Int64ObservableGauge("billing.kafka.lag",
		metric.WithDescription("High watermark less the next offset to be committed."), metric.WithUnit("{offset}"))
	t.queued, errs[7] = meter.Int64ObservableGauge("billing.kafka.queue.records",
		metric.WithDescription("Records that wait or are in flight."), metric.WithUnit("{record}"))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	t.registration, errs[8] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.observe(o, status())
		return nil
	}, t.lag, t.queued)
	if errs[8] != nil {
		return nil, fmt.Errorf("metrics: %w", errs[8])
	}
	return t, nil
}

func (t *telemetry) observe(o metric.Observer, now Status) {
	for _, p := range now.Partitions {
		at := metric.WithAttributes(attribute.Int("partition", int(p.Partition)))
		o.ObserveInt64(t.queued, int64(p.Queued), at)
		if p.Lag >= 0 {
			o.ObserveInt64(t.lag, p.Lag, at)
		}
	}
}

// close stops the observations, so that a closed consumer can be forgotten.
func (t *telemetry) close() error { return t.registration.Unregister() }

// batch runs one batch inside a consumer span that links to its records' traces,
// and measures it.
func (t *telemetry) batch(ctx context.Context, clock domain.Clock, records []domain.Record,
	run func(context.Context) error,
) error {
	ctx, span := t.tracer.Start(ctx, t.span, t.kind...)
	defer span.End()
	if span.IsRecording() { // else nobody would see what it costs to collect
		t.describe(span, records)
	}

	began := clock.Now()
	err := run(ctx)
	as := t.durable
	if err != nil {
		as = t.failed
		span.RecordError(err)
		span.SetStatus(codes.Error, "nothing of the batch is committed")
	} else if t.records.Enabled(ctx) {
		t.records.Add(ctx, int64(len(records)),
			metric.WithAttributes(attribute.Int("partition", int(records[0].Partition))))
	}
	t.batchSize.Record(ctx, int64(len(records)), as...)
	t.batchDuration.Record(ctx, clock.Now().Sub(began).Seconds(), as...)
	return err
}

// describe says in the span what is in the batch.
func (t *telemetry) describe(span trace.Span, records []domain.Record) {
	first := records[0]
	span.SetAttributes(
		semconv.MessagingSystemKafka,
		semconv.MessagingOperationTypeProcess,
		semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(t.topic),
		semconv.MessagingDestinationPartitionID(strconv.Itoa(int(first.Partition))),
		semconv.MessagingConsumerGroupName(t.group),
		semconv.MessagingBatchMessageCount(len(records)),
		semconv.MessagingKafkaOffset(int(first.Offset)),
	)
	t.link(span, records)
}

// link points to the traces in which the records were produced, at most maxLinks.
func (t *telemetry) link(span trace.Span, records []domain.Record) {
	links := 0
	for i := range records {
		if links == maxLinks {
			return
		}
		if len(records[i].Headers) == 0 {
			continue
		}
		from := t.propagator.Extract(context.Background(), carrier{&records[i].Headers})
		if producer := trace.SpanContextFromContext(from); producer.IsValid() {
			span.AddLink(trace.Link{SpanContext: producer})
			links++
		}
	}
}

func (t *telemetry) rebalanced(ctx context.Context, kind string, partitions int) {
	t.rebalances.Add(ctx, int64(partitions), metric.WithAttributes(attribute.String("kind", kind)))
}

func (t *telemetry) commitFailed(ctx context.Context) { t.commitErrors.Add(ctx, 1) }

func (t *telemetry) maxPollExceeded(ctx context.Context) { t.tooSlow.Add(ctx, 1) }
