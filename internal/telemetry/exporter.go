package telemetry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Variables of the OpenTelemetry specification that decide whether an exporter runs.
const (
	envDisabled        = "OTEL_SDK_DISABLED"
	envEndpoint        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envTracesExporter  = "OTEL_TRACES_EXPORTER"
	envMetricsEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	envMetricsExporter = "OTEL_METRICS_EXPORTER"
	exporterNone       = "none"
	exporterPrometheus = "prometheus"
)

// Variables returns the names of the variables of the OpenTelemetry specification that
// matter here: those above, and the two that name the resource.
func Variables() []string {
	return []string{
		envDisabled, envEndpoint, envTracesEndpoint, envTracesExporter, envMetricsEndpoint, envMetricsExporter,
		"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	}
}

// newSpanExporter returns the exporter that the environment asks for by naming
// one or an OTLP endpoint, and nil otherwise: the specification's default, an
// exporter to localhost, would fail for ever where nobody listens.
func newSpanExporter(ctx context.Context, getenv func(string) string) (sdktrace.SpanExporter, error) {
	name := getenv(envTracesExporter)
	asked := name != "" || getenv(envEndpoint) != "" || getenv(envTracesEndpoint) != ""
	if !asked || name == exporterNone || disabled(getenv) {
		return nil, nil
	}
	if err := known(envTracesExporter, name, "otlp", "console"); err != nil {
		return nil, err
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("trace exporter (%s=%q): %w", envTracesExporter, name, err)
	}
	return exporter, nil
}

// newMetricReader returns the reader that pushes metrics, where the environment
// asks for one by name or by an endpoint of their own; nil otherwise. A general
// OTLP endpoint is not enough: many take traces only, and Prometheus reads the
// metrics anyway.
func newMetricReader(ctx context.Context, getenv func(string) string) (sdkmetric.Reader, error) {
	name := getenv(envMetricsExporter)
	asked := name != "" || getenv(envMetricsEndpoint) != ""
	if !asked || name == exporterNone || name == exporterPrometheus || disabled(getenv) {
		return nil, nil
	}
	if err := known(envMetricsExporter, name, "otlp", "console"); err != nil {
		return nil, err
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil {
		return nil, fmt.Errorf("metric exporter (%s=%q): %w", envMetricsExporter, name, err)
	}
	return reader, nil
}

// known accepts an exporter that can be built here; none and prometheus were dealt with.
func known(variable, name string, names ...string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s=%q: want one of %s, or none", variable, name, strings.Join(names, ", "))
}

func disabled(getenv func(string) string) bool { return strings.EqualFold(getenv(envDisabled), "true") }
