package payment

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
)

const scope = "example.com/billing/internal/payment"

// telemetry observes attempts. It sees no payload, key or customer.
type telemetry struct {
	clock      domain.Clock
	tracer     trace.Tracer
	propagator propagation.TraceContext
	server     []attribute.KeyValue
	duration   metric.Float64Histogram
	attempts   metric.Int64Counter
	inFlight   metric.Int64UpDownCounter
	lookUps    metric.Int64Counter

	mu       sync.RWMutex
	outcomes map[outcome]*labels // there are few, and many attempts
}

// outcome is what the metrics tell attempts apart by.
type outcome struct {
	kind   domain.AnswerKind
	status int
}

// labels are the attributes of an outcome, ready for use.
type labels struct {
	duration []metric.RecordOption
	attempts []metric.AddOption
}

func newTelemetry(tools Tools, target *url.URL) (*telemetry, error) {
	if tools.Tracer == nil {
		tools.Tracer = otel.GetTracerProvider()
	}
	if tools.Meter == nil {
		tools.Meter = otel.GetMeterProvider()
	}
	t := &telemetry{clock: tools.Clock, tracer: tools.Tracer.Tracer(scope), server: serverAttributes(target), outcomes: map[outcome]*labels{}}
	meter := tools.Meter.Meter(scope)
	var err error
	t.duration, err = meter.Float64Histogram("billing.payment.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of one attempt at the payment provider, by what its answer means."),
		metric.WithExplicitBucketBoundaries(.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	if err != nil {
		return nil, err
	}
	t.attempts, err = meter.Int64Counter("billing.payment.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts at the payment provider, by what the answer means and its HTTP status (0: none came)."))
	if err != nil {
		return nil, err
	}
	t.lookUps, err = meter.Int64Counter("billing.payment.lookups", metric.WithUnit("{lookup}"),
		metric.WithDescription("Charges looked up by their key, by whether they were found, are missing, or the look-up failed."))
	if err != nil {
		return nil, err
	}
	t.inFlight, err = meter.Int64UpDownCounter("billing.payment.in_flight", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts that are waiting for an answer."))
	return t, err
}

func serverAttributes(target *url.URL) []attribute.KeyValue {
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	number, _ := strconv.Atoi(port) // url.Parse has checked that it is one
	return []attribute.KeyValue{
		semconv.HTTPRequestMethodPost, semconv.ServerAddress(target.Hostname()), semconv.ServerPort(number),
		semconv.URLTemplate("/v1/charges"),
	}
}

// start opens the span of the nth attempt. The function returned closes it.
func (t *telemetry) start(ctx context.Context, request domain.ChargeRequest, nth int) (context.Context, func(domain.Answer)) {
	ctx, links := t.parent(ctx, request)
	ctx, span := t.tracer.Start(ctx, "POST /v1/charges", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(t.server...), trace.WithLinks(links...))
	if nth > 1 {
		span.SetAttributes(semconv.HTTPRequestResendCount(nth - 1))
	}
	t.inFlight.Add(ctx, 1)
	began := t.clock.Now()
	return ctx, func(answer domain.Answer) {
		is := t.labelled(outcome{answer.Kind, answer.Status})
		t.inFlight.Add(ctx, -1)
		t.duration.Record(ctx, t.clock.Now().Sub(began).Seconds(), is.duration...)
		t.attempts.Add(ctx, 1, is.attempts...)
		end(span, answer)
	}
}

// labelled returns the labels of an outcome.
func (t *telemetry) labelled(o outcome) *labels {
	t.mu.RLock()
	known := t.outcomes[o]
	t.mu.RUnlock()
	if known != nil {
		return known
	}
	kind := answerKind(o.kind)
	made := &labels{
		duration: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(kind))},
		attempts: []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(kind, semconv.HTTPResponseStatusCode(o.status)))},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes[o] = made
	return made
}

func answerKind(k domain.AnswerKind) attribute.KeyValue {
	return attribute.String("billing.answer", k.String())
}

// end closes the span of an attempt.
func end(span trace.Span, answer domain.Answer) {
	defer span.End()
	if !span.IsRecording() {
		return // nobody would see it
	}
	span.SetAttributes(answerKind(answer.Kind))
	if answer.Status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(answer.Status))
	}
	if answer.Kind != domain.Captured && answer.Kind != domain.Declined {
		span.SetAttributes(semconv.ErrorTypeKey.String(answer.Kind.String()))
		span.SetStatus(codes.Error, answer.Detail)
	}
}

// parent continues the producer's trace, which came with the request. A span that
// is open in ctx in the same trace is nearer and stays the parent; one of another
// trace (that of the batch) is linked.
func (t *telemetry) parent(ctx context.Context, request domain.ChargeRequest) (context.Context, []trace.Link) {
	around := trace.SpanContextFromContext(ctx)
	remote := trace.SpanContextFromContext(t.propagator.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": request.TraceParent, "tracestate": request.TraceState,
	}))
	if !remote.IsValid() || remote.TraceID() == around.TraceID() {
		return ctx, nil
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
	if !around.IsValid() {
		return ctx, nil
	}
	return ctx, []trace.Link{{SpanContext: around}}
}

// inject writes traceparent and tracestate.
func (t *telemetry) inject(ctx context.Context, header http.Header) {
	t.propagator.Inject(ctx, propagation.HeaderCarrier(header))
}
