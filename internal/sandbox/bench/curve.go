package bench

import (
	"context"
	"fmt"
	"time"
)

// curve is the throughput by the provider's latency.
func (b *bench) curve(ctx context.Context, name string) error {
	for _, latency := range []time.Duration{0, 1, 5, 20, 50, 100, 200} {
		if err := b.point(ctx, name, latency*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

const (
	// pointTime is about how long each way is measured at a latency, at scale 1.
	pointTime = 4 * time.Second
	// overhead is about what an event costs besides the provider's latency, one at a time; fastest what billing does at most.
	overhead = 1200 * time.Microsecond
	fastest  = 10_000
)

// point measures one latency: the sequential way with as many records as take it some seconds, or the least number.
func (b *bench) point(ctx context.Context, name string, latency time.Duration) error {
	faults := "latency=" + latency.String()
	sequential := int(float64(b.options.Partitions) * pointTime.Seconds() / (latency + overhead).Seconds())
	few, err := b.backlog(ctx, b.options.scaled(sequential), b.options.Partitions)
	if err != nil {
		return err
	}
	many, err := b.backlog(ctx, b.options.scaled(fastest*int(pointTime.Seconds())), b.options.Partitions)
	if err != nil {
		return err
	}
	own := fmt.Sprintf("%s %s", name, latency)
	ceiling, err := b.best(ctx, own, faults, latency)
	if err != nil {
		return err
	}
	if err := b.once(ctx, task{scenario: own, mode: Sequential, round: 1, faults: faults, load: few}); err != nil {
		return err
	}
	if err := b.once(ctx, task{scenario: own, mode: Billing, round: 1, faults: faults, load: many}); err != nil {
		return err
	}
	row := Row{
		Scenario: name, Figure: fmt.Sprintf("charges/s at %d ms", latency.Milliseconds()), Ceiling: ceiling,
		Sequential: b.report.of(own, Sequential).median(rate), Billing: b.report.of(own, Billing).median(rate),
	}
	row.Measured, row.Unit = ratio(row.Billing, row.Sequential), "× sequential"
	b.add(row)
	b.report.Points = append(b.report.Points, Point{
		LatencyMS: float64(latency) / float64(time.Millisecond), Ceiling: *ceiling, Sequential: *row.Sequential, Billing: *row.Billing,
	})
	return nil
}
