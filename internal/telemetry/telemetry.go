package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// shutdownBound is the longest that the last spans may take to be sent.
	shutdownBound = 5 * time.Second
	// maxScrapes is how many scrapes are answered at a time; further ones get a 503.
	maxScrapes = 4
	// scrapeBound is the longest that one scrape may take.
	scrapeBound = 10 * time.Second
)

// Telemetry is what the service tells about itself. It is safe for concurrent use.
type Telemetry struct {
	log      *slog.Logger
	tracers  trace.TracerProvider
	spans    *sdktrace.TracerProvider // nil where no exporter takes them
	meters   *sdkmetric.MeterProvider
	registry *prometheus.Registry
}

// Setup builds traces, metrics and logs. It connects to nobody: an exporter that
// cannot reach its collector says so in the log, at most once in ten seconds, and
// the service goes on. An error is a complaint about the configuration.
func Setup(ctx context.Context, cfg Config) (*Telemetry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log, err := NewLogger(cfg.LogOutput, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return nil, err
	}
	origin, err := describe(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(&errorLog{log: log, clock: cfg.Clock})

	t := &Telemetry{log: log, registry: prometheus.NewRegistry()}
	t.tracers = noop.NewTracerProvider()
	if t.spans, err = newTracers(ctx, &cfg, origin); t.spans != nil {
		t.tracers = t.spans
	}
	if err == nil {
		t.meters, err = newMeters(ctx, &cfg, origin, t.registry)
	}
	if err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// describe returns the resource that traces and metrics come from.
func describe(ctx context.Context, cfg *Config) (*resource.Resource, error) {
	origin, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			semconv.ServiceName(cfg.ServiceName), semconv.ServiceVersion(cfg.ServiceVersion)),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return origin, nil
}

// newTracers returns a provider that samples as OTEL_TRACES_SAMPLER says: by
// default as the parent does, and always without one. Where nobody exports spans
// it returns nil: they would be made for nothing, one and more for every charge,
// and a producer's trace context passes through unchanged without them.
func newTracers(ctx context.Context, cfg *Config, origin *resource.Resource) (*sdktrace.TracerProvider, error) {
	exporter, err := newSpanExporter(ctx, cfg.Getenv)
	if err != nil || exporter == nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(sdktrace.WithResource(origin), sdktrace.WithBatcher(exporter)), nil
}

func newMeters(ctx context.Context, cfg *Config, origin *resource.Resource,
	registry *prometheus.Registry,
) (*sdkmetric.MeterProvider, error) {
	if err := errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	); err != nil {
		return nil, fmt.Errorf("metrics of the process: %w", err)
	}
	scraped, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics for Prometheus: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(origin), sdkmetric.WithReader(scraped)}
	pushed, err := newMetricReader(ctx, cfg.Getenv)
	if err != nil {
		return nil, err
	}
	if pushed != nil {
		options = append(options, sdkmetric.WithReader(pushed))
	}
	return sdkmetric.NewMeterProvider(options...), nil
}

// Logger returns the log.
func (t *Telemetry) Logger() *slog.Logger { return t.log }

// Tracers returns where traces begin.
func (t *Telemetry) Tracers() trace.TracerProvider { return t.tracers }

// Meters returns where instruments come from.
func (t *Telemetry) Meters() metric.MeterProvider { return t.meters }

// Propagator carries traces across processes: W3C trace context and baggage.
func (t *Telemetry) Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// MetricsHandler serves every metric to Prometheus.
func (t *Telemetry) MetricsHandler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeBound,
	})
}

// Shutdown sends what is left, for five seconds at most and no longer than ctx
// allows. Nothing is recorded afterwards; the logger goes on.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownBound)
	defer cancel()
	var errs []error
	if t.spans != nil {
		errs = append(errs, t.spans.Shutdown(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.Shutdown(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("shut telemetry down: %w", err)
	}
	return nil
}
