package kafka

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"example.com/billing/internal/domain"
)

// relayMetrics is what a relay shows of itself.
type relayMetrics struct {
	published    metric.Int64Counter
	refused      metric.Int64Counter
	registration metric.Registration
}

func newRelayMetrics(to Telemetry, status func() RelayStatus, clock domain.Clock) (*relayMetrics, error) {
	if to.Meters == nil {
		to.Meters = metricnoop.NewMeterProvider()
	}
	meter := to.Meters.Meter(scope)
	m := &relayMetrics{}
	var errs [7]error
	m.published, errs[0] = meter.Int64Counter("billing.outbox.published",
		metric.WithDescription("Messages delivered to the brokers, repetitions left out."), metric.WithUnit("{message}"))
	m.refused, errs[1] = meter.Int64Counter("billing.outbox.refused",
		metric.WithDescription("Messages that the brokers will not take, kept aside."), metric.WithUnit("{message}"))
	rows, err := meter.Int64ObservableGauge("billing.outbox.backlog",
		metric.WithDescription("Messages still to be published, counted to 100,000; shown by the instance that publishes."),
		metric.WithUnit("{message}"))
	errs[2] = err
	age, err := meter.Float64ObservableGauge("billing.outbox.age",
		metric.WithDescription("Age of the oldest message still to be published; shown by the instance that publishes."), metric.WithUnit("s"))
	errs[3] = err
	leading, err := meter.Int64ObservableGauge("billing.outbox.leading",
		metric.WithDescription("1 for the instance that publishes, 0 for the others."))
	errs[4] = err
	aside, err := meter.Int64ObservableGauge("billing.outbox.aside",
		metric.WithDescription("Messages kept aside in outbox_refused; shown by the instance that publishes."), metric.WithUnit("{message}"))
	errs[5] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	m.registration, errs[6] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := status()
		if !now.Leading {
			o.ObserveInt64(leading, 0)
			return nil
		}
		o.ObserveInt64(leading, 1)
		o.ObserveInt64(rows, int64(now.Backlog.Rows))
		o.ObserveInt64(aside, int64(now.Backlog.Refused))
		seconds := 0.0
		if !now.Backlog.Oldest.IsZero() {
			seconds = clock.Now().Sub(now.Backlog.Oldest).Seconds()
		}
		o.ObserveFloat64(age, seconds)
		return nil
	}, rows, age, leading, aside)
	if errs[6] != nil {
		return nil, fmt.Errorf("metrics: %w", errs[6])
	}
	return m, nil
}

// told counts what a batch came to.
func (m *relayMetrics) told(ctx context.Context, published, refused map[domain.MessageKind]int64) {
	for kind, n := range published {
		m.published.Add(ctx, n, metric.WithAttributes(attribute.String("kind", string(kind))))
	}
	for kind, n := range refused {
		m.refused.Add(ctx, n, metric.WithAttributes(attribute.String("kind", string(kind))))
	}
}

// close stops the observations.
func (m *relayMetrics) close() error { return m.registration.Unregister() }
