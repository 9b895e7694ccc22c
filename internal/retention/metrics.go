package retention

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"example.com/billing/internal/domain"
)

// scope names the instruments.
const scope = "example.com/billing/internal/retention"

// Meters makes the instruments.
type Meters = metric.MeterProvider

// metrics is what a keeper shows of itself.
type metrics struct {
	turns        metric.Float64Histogram
	removed      metric.Int64Counter
	errs         metric.Int64Counter
	registration metric.Registration
}

func newMetrics(meters Meters, status func() Status) (*metrics, error) {
	if meters == nil {
		meters = metricnoop.NewMeterProvider()
	}
	meter := meters.Meter(scope)
	m := &metrics{}
	var errs [6]error
	m.turns, errs[0] = meter.Float64Histogram("billing.retention.turn.duration",
		metric.WithDescription("Time of a turn of retention, its chores included."), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120))
	m.removed, errs[1] = meter.Int64Counter("billing.retention.removed",
		metric.WithDescription("Rows removed: of whole ranges by estimate, one by one, and by each chore."), metric.WithUnit("{row}"))
	m.errs, errs[2] = meter.Int64Counter("billing.retention.errors",
		metric.WithDescription("Turns of retention, and questions for the lead, that ended with an error."))
	leading, err := meter.Int64ObservableGauge("billing.retention.leading",
		metric.WithDescription("1 for the instance that does retention, 0 for the others."))
	errs[3] = err
	ranges, err := meter.Int64ObservableGauge("billing.retention.ranges",
		metric.WithDescription("Ranges of processed_event by state; shown by the instance that does retention."))
	errs[4] = err
	blocked, err := meter.Float64ObservableGauge("billing.retention.blocked",
		metric.WithDescription("For how long the oldest rows that something unfinished or unread keeps have been due; 0 when there are none."),
		metric.WithUnit("s"))
	errs[5] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	m.errs.Add(context.Background(), 0) // shown from the start, so that the first error is a rise
	m.registration, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := status()
		if !now.Leading {
			o.ObserveInt64(leading, 0)
			return nil
		}
		o.ObserveInt64(leading, 1)
		states := map[domain.RangeState]int64{
			domain.RangeAhead: 0, domain.RangeCurrent: 0, domain.RangeKept: 0, domain.RangeDue: 0,
			domain.RangeBlocked: 0, domain.RangeEmptied: 0, domain.RangeMissing: 0, domain.RangeForeign: 0,
		}
		for i := range now.Report.Ranges {
			states[now.Report.Ranges[i].State]++
		}
		delete(states, domain.RangeDropped)
		for state, n := range states {
			o.ObserveInt64(ranges, n, metric.WithAttributes(attribute.String("state", string(state))))
		}
		seconds := 0.0
		if since := now.Report.BlockedSince; !since.IsZero() {
			seconds = now.Report.FinishedAt.Sub(since).Seconds()
		}
		o.ObserveFloat64(blocked, seconds)
		return nil
	}, leading, ranges, blocked)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return m, nil
}

// told counts what a turn came to.
func (m *metrics) told(ctx context.Context, r *domain.RetentionReport) {
	m.turns.Record(ctx, r.FinishedAt.Sub(r.StartedAt).Seconds())
	add := func(what string, n int64) {
		if n > 0 {
			m.removed.Add(ctx, n, metric.WithAttributes(attribute.String("what", what)))
		}
	}
	add("ranges", r.Removed)
	add("rows", r.Deleted)
	for i := range r.Chores {
		add(r.Chores[i].Name, r.Chores[i].Removed)
	}
}

func (m *metrics) failed(ctx context.Context) { m.errs.Add(ctx, 1) }

// close stops the observations.
func (m *metrics) close() error { return m.registration.Unregister() }
