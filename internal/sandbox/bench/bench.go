package bench

import (
	"context"
	"errors"
	"slices"
	"time"
)

// byName is the set of the scenarios that are measured only when they are asked for.
const byName = "by name"

// scenario is something to measure.
type scenario struct {
	name string
	set  string
	run  func(*bench, context.Context, string) error
}

// scenarios are all of them, in the order in which they run.
func scenarios() []scenario {
	return []scenario{
		{"0ms", sectionMain, (*bench).fast},
		{"50ms", sectionMain, (*bench).slow},
		{"lognormal", sectionMain, (*bench).tail},
		{"200/s", sectionMain, (*bench).calm},
		{"memory", sectionMain, (*bench).memory},
		{"latency", sectionMain, (*bench).curve},
		{"rows", sectionGrowth, (*bench).rows},
		{"partitions", sectionGrowth, (*bench).lanes},
		{"inserts", sectionRetention, (*bench).inserts},
		{"emptying", sectionRetention, (*bench).emptying},
		{"statistics", sectionRetention, (*bench).statistics},
		{"positions", byName, (*bench).positions},
		{"poison", byName, (*bench).poison},
	}
}

// Names are those of the scenarios.
func Names() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// bench is one bench under way.
type bench struct {
	*World
	options *Options
	report  Report
}

// Measure runs the scenarios. Everything that was started has ended when it returns.
func Measure(ctx context.Context, o Options) (report Report, err error) {
	began := time.Now()
	world, err := StartWorld(ctx, &o)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, world.Stop(ctx)) }()
	b := &bench{World: world, options: &o, report: Report{Scale: o.Scale, Rounds: o.Rounds}}
	if b.report.Facts, err = world.facts(ctx); err != nil {
		return b.report, err
	}
	for _, s := range scenarios() {
		wanted := len(o.Only) == 0 && s.set == o.Section() || slices.Contains(o.Only, s.name)
		if !wanted {
			continue
		}
		if err := s.run(b, ctx, s.name); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return b.report, err
		}
	}
	b.report.Seconds = time.Since(began).Seconds()
	return b.report, nil
}

// add appends rows to the table.
func (b *bench) add(rows ...Row) { b.report.Rows = append(b.report.Rows, rows...) }

// once measures a task and keeps what it found.
func (b *bench) once(ctx context.Context, t task) error {
	run, err := b.measure(ctx, t)
	if err != nil {
		return err
	}
	b.report.Runs = append(b.report.Runs, run)
	b.options.Say("%-10s %-10s round %d: %s charges in %.2f s: %s/s, %.0f µs CPU a record, %d in flight, %d connections, %.0f MB%s",
		run.Scenario, run.Mode, run.Round, thousands(float64(run.Charges), 0), run.Seconds, thousands(run.Rate, 0), run.CPU, run.InFlight,
		run.Connections, run.Memory, voidMark(&run))
	return nil
}

func voidMark(r *Run) string {
	if r.Void == "" {
		return ""
	}
	return ", VOID: " + r.Void
}

// best measures the ceiling at a provider's latency and keeps what it found.
func (b *bench) best(ctx context.Context, name, faults string, latency time.Duration) (*float64, error) {
	widths := []int{8, 16, 32, 64}
	switch {
	case latency >= slowLatency:
		widths = []int{512, 1024}
	case latency > time.Millisecond:
		widths = []int{64, 256, 1024}
	}
	c, err := b.ceiling(ctx, faults, func(width int) int { return ceilingRequests(width, latency, b.options.Scale) }, widths...)
	if err != nil {
		return nil, err
	}
	b.report.Ceiling = append(b.report.Ceiling, c)
	b.options.Say("%-10s %-10s %s/s, best at %d at a time", name, "ceiling", thousands(c.Rate, 0), c.Width)
	return &c.Rate, nil
}

const (
	// ceilingTime is about how long the ceiling is measured at each width; a short time would measure how fast connections are made.
	ceilingTime = 2500 * time.Millisecond
	// ceilingRate is more than the client can do on some cores.
	ceilingRate = 20_000
	// ceilingLeast is the smallest part of it, however small the scale.
	ceilingLeast = 0.2
)

// ceilingRequests is how many requests take about the time, and some for each connection.
func ceilingRequests(width int, latency time.Duration, scale float64) int {
	rate := float64(ceilingRate)
	if latency > 0 {
		rate = min(rate, float64(width)/latency.Seconds())
	}
	return max(3*width, int(rate*ceilingTime.Seconds()*max(scale, ceilingLeast)))
}
