package app

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/billing/internal/domain"
)

// showGate makes the gate's state a metric: whether intake is paused and why, how
// often that happened, and how many probes went out.
func showGate(meters metric.MeterProvider, gate *domain.Gate) error {
	meter := meters.Meter("example.com/billing/internal/app")
	paused, failed := meter.Int64ObservableGauge("billing.provider.paused",
		metric.WithDescription("1 while intake is paused for the provider's sake, by cause: it refuses us, or it fails."))
	pauses, err := meter.Int64ObservableCounter("billing.provider.pauses", metric.WithUnit("{pause}"),
		metric.WithDescription("Times that intake was paused for the provider's sake, by cause."))
	failed = errors.Join(failed, err)
	probes, err := meter.Int64ObservableCounter("billing.provider.probes", metric.WithUnit("{probe}"),
		metric.WithDescription("Charges sent to try the provider out while intake was paused."))
	if failed = errors.Join(failed, err); failed != nil {
		return fmt.Errorf("metrics of the gate: %w", failed)
	}
	by := func(cause domain.Cause) metric.ObserveOption {
		return metric.WithAttributes(attribute.String("cause", string(cause)))
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := gate.State()
		for cause, times := range map[domain.Cause]int64{
			domain.CauseRefused: s.Counts.Refusals, domain.CauseFailing: s.Counts.Failures,
		} {
			now := int64(0)
			if s.Cause == cause {
				now = 1
			}
			o.ObserveInt64(paused, now, by(cause))
			o.ObserveInt64(pauses, times, by(cause))
		}
		o.ObserveInt64(probes, s.Counts.Probes)
		return nil
	}, paused, pauses, probes)
	if err != nil {
		return fmt.Errorf("metrics of the gate: %w", err)
	}
	return nil
}
