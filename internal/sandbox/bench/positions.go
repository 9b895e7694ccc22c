package bench

import "context"

// positionRecords are consumed with each store of positions.
const positionRecords = 50_000

// positions compares the stores of positions, at a provider that takes no time and at a slow one.
func (b *bench) positions(ctx context.Context, name string) error {
	l, err := b.backlog(ctx, b.options.scaled(positionRecords), b.options.Partitions)
	if err != nil {
		return err
	}
	for _, provider := range []struct{ at, faults string }{{"0ms", ""}, {"50ms", slowFaults}} {
		own := name + " at " + provider.at
		for round := 1; round <= b.options.Rounds; round++ {
			modes := []Mode{Billing, Booked}
			if round%2 == 0 {
				modes[0], modes[1] = modes[1], modes[0] // whoever comes first finds the topic out of the caches
			}
			for _, mode := range modes {
				if err := b.once(ctx, task{scenario: own, mode: mode, round: round, faults: provider.faults, load: l}); err != nil {
					return err
				}
			}
		}
		inKafka, inBook := b.report.of(own, Billing), b.report.of(own, Booked)
		row := Row{Scenario: name, Figure: "charges/s, in Kafka, provider " + provider.at, Billing: inKafka.median(rate)}
		b.add(row)
		booked := Row{Scenario: name, Figure: "charges/s, in the database, provider " + provider.at, Billing: inBook.median(rate)}
		booked.Measured, booked.Unit = ratio(booked.Billing, row.Billing), "× in Kafka"
		b.add(booked)
		busy := Row{Scenario: name, Figure: "CPU of billing, µs/record, in the database, provider " + provider.at, Billing: inBook.median(cpu)}
		busy.Measured, busy.Unit = ratio(busy.Billing, inKafka.median(cpu)), "× in Kafka"
		b.add(busy)
	}
	return nil
}
