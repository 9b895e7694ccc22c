package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Sizes of the scenarios at scale 1, and their providers.
const (
	fastRecords    = 50_000
	fastSequential = 20_000 // its rate does not change on the way
	slowRecords    = 100_000
	slowSequential = 3_000
	tailRecords    = 200_000
	calmRate       = 200.0 // records per second
	calmRecords    = 3_000 // of one round: 15 s
	memoryRecords  = 1_000_000
	memoryLimit    = 60 * time.Second
	slowLatency    = 50 * time.Millisecond
	slowFaults     = "latency=50ms"
	tailFaults     = "latency=lognormal:50ms:1s:2s"
	connectionGoal = 20
	inFlightGoal   = 500
	memoryGoal     = 150
	sequentialGoal = 3.5
	ceilingGoal    = 0.3
	slowGoal       = 80
	tailGoal       = 0.5
	cpuGoal        = 0.7
	calmGoal       = 1.3
)

// fast is a provider that takes no time: what does billing itself cost?
func (b *bench) fast(ctx context.Context, name string) error {
	few, err := b.backlog(ctx, b.options.scaled(fastSequential), b.options.Partitions)
	if err != nil {
		return err
	}
	many, err := b.backlog(ctx, b.options.scaled(fastRecords), b.options.Partitions)
	if err != nil {
		return err
	}
	var ceilings []float64
	for round := 1; round <= b.options.Rounds; round++ {
		c, err := b.best(ctx, name, "", 0)
		if err != nil {
			return err
		}
		ceilings = append(ceilings, *c)
		if err := b.once(ctx, task{scenario: name, mode: Sequential, round: round, load: few}); err != nil {
			return err
		}
		if err := b.once(ctx, task{scenario: name, mode: Billing, round: round, load: many}); err != nil {
			return err
		}
	}
	slices.Sort(ceilings)
	ceiling := &ceilings[len(ceilings)/2]
	sequential, billing := b.report.of(name, Sequential), b.report.of(name, Billing)
	row := Row{Scenario: name, Figure: "charges/s", Sequential: sequential.median(rate), Billing: billing.median(rate)}
	b.add(row.atLeast(sequentialGoal, ratio(row.Billing, row.Sequential), "× sequential"))
	row = Row{Scenario: name, Figure: "charges/s beside the client alone", Ceiling: ceiling, Billing: row.Billing}
	b.add(row.atLeast(ceilingGoal, ratio(row.Billing, ceiling), "× ceiling"))
	row = Row{Scenario: name, Figure: "CPU of billing, µs/record", Sequential: sequential.median(cpu), Billing: billing.median(cpu)}
	b.add(row.atMost(cpuGoal, ratio(row.Billing, row.Sequential), "× sequential"))
	b.resourceRows(name, false)
	return nil
}

// resourceRows show what billing takes for it; wide, where hundreds of charges are to be in flight.
func (b *bench) resourceRows(name string, wide bool) {
	sequential, billing := b.report.of(name, Sequential), b.report.of(name, Billing)
	row := Row{Scenario: name, Figure: "charges in flight, most", Sequential: sequential.most(inFlight), Billing: billing.most(inFlight)}
	if wide {
		row = row.atLeast(inFlightGoal, row.Billing, "")
	}
	b.add(row)
	b.add(Row{Scenario: name, Figure: "charges in flight, mean", Digits: 1, Sequential: sequential.median(mean), Billing: billing.median(mean)})
	row = Row{Scenario: name, Figure: "database connections, most", Sequential: sequential.most(connections), Billing: billing.most(connections)}
	b.add(row.atMost(connectionGoal, row.Billing, ""))
	b.add(Row{Scenario: name, Figure: "memory of billing, peak MB", Sequential: sequential.most(memory), Billing: billing.most(memory)})
}

// slow is a provider that takes 50 ms: how many charges are in flight?
func (b *bench) slow(ctx context.Context, name string) error {
	few, err := b.backlog(ctx, b.options.scaled(slowSequential), b.options.Partitions)
	if err != nil {
		return err
	}
	many, err := b.backlog(ctx, b.options.scaled(slowRecords), b.options.Partitions)
	if err != nil {
		return err
	}
	ceiling, err := b.best(ctx, name, slowFaults, slowLatency)
	if err != nil {
		return err
	}
	if err := b.once(ctx, task{scenario: name, mode: Sequential, round: 1, faults: slowFaults, load: few}); err != nil {
		return err
	}
	for round := 1; round <= b.options.Rounds; round++ {
		if err := b.once(ctx, task{scenario: name, mode: Billing, round: round, faults: slowFaults, load: many}); err != nil {
			return err
		}
	}
	row := Row{
		Scenario: name, Figure: "charges/s", Ceiling: ceiling, Sequential: b.report.of(name, Sequential).median(rate),
		Billing: b.report.of(name, Billing).median(rate),
	}
	b.add(row.atLeast(slowGoal, ratio(row.Billing, row.Sequential), "× sequential"))
	b.resourceRows(name, true)
	return nil
}

// tail is a provider with stragglers: do they hold up the others?
func (b *bench) tail(ctx context.Context, name string) error {
	l, err := b.backlog(ctx, b.options.scaled(tailRecords), b.options.Partitions)
	if err != nil {
		return err
	}
	if err := b.once(ctx, task{scenario: name, mode: Billing, round: 1, faults: tailFaults, load: l}); err != nil {
		return err
	}
	row := Row{Scenario: name, Figure: "charges/s, 5 to 95 % done", Billing: b.report.of(name, Billing).median(steadily)}
	slow := b.report.of("50ms", Billing).median(rate)
	b.add(row.atLeast(tailGoal, ratio(row.Billing, slow), "× at 50ms"))
	b.add(Row{Scenario: name, Figure: "charges/s, all", Billing: b.report.of(name, Billing).median(rate)})
	b.resourceRows(name, true)
	return nil
}

// calm is a low rate: what does batching cost the single event?
func (b *bench) calm(ctx context.Context, name string) error {
	for round := 1; round <= b.options.Rounds; round++ {
		for _, mode := range []Mode{Sequential, Billing} {
			l, err := b.newLoad(ctx, b.options.scaled(calmRecords), b.options.Partitions)
			if err != nil {
				return err
			}
			if err := b.once(ctx, task{scenario: name, mode: mode, round: round, load: l, rate: calmRate}); err != nil {
				return err
			}
		}
	}
	sequential, billing := b.report.of(name, Sequential), b.report.of(name, Billing)
	for _, quantile := range []struct {
		name string
		of   func(*Run) float64
	}{{"p50", p50}, {"p99", p99}} {
		row := Row{
			Scenario: name, Figure: "send to commit, " + quantile.name + " ms", Digits: 2,
			Sequential: sequential.median(quantile.of), Billing: billing.median(quantile.of),
		}
		b.add(row.atMost(calmGoal, ratio(row.Billing, row.Sequential), "× sequential"))
	}
	return nil
}

// memory is a long backlog: what does billing hold of it?
func (b *bench) memory(ctx context.Context, name string) error {
	l, err := b.backlog(ctx, b.options.scaled(memoryRecords), b.options.Partitions)
	if err != nil {
		return err
	}
	if err := b.once(ctx, task{scenario: name, mode: Billing, round: 1, load: l, limit: memoryLimit}); err != nil {
		return err
	}
	run := b.report.of(name, Billing)
	row := Row{Scenario: name, Figure: "memory of billing, peak MB", Billing: run.most(memory)}
	b.add(row.atMost(memoryGoal, row.Billing, "MB"))
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("memory: %s of %s records consumed, at most %s were given",
		thousands(float64(run[0].Charges)/(1-duplicates), 0), thousands(float64(l.expected.Records), 0), memoryLimit))
	return nil
}
