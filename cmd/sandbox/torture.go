package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/sandbox/run"
	"example.com/billing/internal/sandbox/torture"
)

// tortureRate is in records per second: a few charges are always in flight, and two
// busy processors keep up.
const tortureRate = 120

func tortureCommand(std streams) *cobra.Command {
	o := torture.Options{}
	minutes := 0.0
	c := &cobra.Command{
		Use:   "torture",
		Short: "Billing under kills, stops, restarts, cuts and a failing provider, judged from outside",
		Long: "Runs billing under faults and judges what is left behind: nothing lost, nothing charged twice, no request\n" +
			"repeated without a reason. Family a: a provider that ignores idempotency keys, and faults that deduplication\n" +
			"has to absorb alone. Family b: one that honours them, and every fault. docs/torture.md says how to read it.\n" +
			"It exits 0 only when everything is clean; the last line says so, with the seed.",
		Example: "  sandbox torture --minutes 10\n  sandbox torture --minutes 2 --family b --kafka apache --seed 7",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = rand.Uint64() >> 1 //nolint:gosec // a seed, no secret
			}
			o.Duration, o.Environ = time.Duration(minutes*float64(time.Minute)), os.Environ()
			if err := besideUs(&o.Billing, "billing"); err != nil {
				return err
			}
			if err := besideUs(&o.Victim, "victim"); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			return runTorture(cmd, std, &o)
		},
	}
	f := c.Flags()
	f.Float64Var(&minutes, "minutes", 10, "for how long faults are made, all families together")
	f.Uint64Var(&o.Seed, "seed", 0, "what is sent and which faults are made follows from it (default: drawn)")
	f.StringVar(&o.Kafka, "kafka", run.KafkaEmbedded, "the broker: embedded, or apache (needs Java 17 and the jars of 'make kafka-jars')")
	f.StringVar(&o.Family, "family", torture.FamilyBoth, "a: the provider ignores keys; b: it honours them; both")
	f.Float64Var(&o.Rate, "rate", tortureRate, "records per second")
	f.BoolVar(&o.Keep, "keep", false, "keep the folder of logs and data")
	f.StringVar(&o.Billing, "billing", "", "path of the billing binary (default: beside this one)")
	f.StringVar(&o.Victim, "victim", "", "path of the victim's binary (default: beside this one)")
	return c
}

func runTorture(cmd *cobra.Command, std streams, o *torture.Options) error {
	ctx, cancel := untilEnded(cmd.Context())
	defer cancel()
	o.Say = func(format string, args ...any) { fmt.Fprintf(std.out, format+"\n", args...) }
	o.Say("torture: seed %d", o.Seed)
	reports, err := torture.Run(ctx, o)
	for i := range reports {
		reports[i].Write(std.out, width(std.out))
	}
	if err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	line, clean := torture.Verdict(o.Seed, reports)
	fmt.Fprintln(std.out, line)
	if !clean {
		return exitError{exitFail}
	}
	return nil
}

// besideUs fills in the path of a binary that lies beside this one.
func besideUs(path *string, name string) error {
	if *path == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the %s binary: %w", name, err)
		}
		*path = filepath.Join(filepath.Dir(self), name)
	}
	absolute, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	*path = absolute
	return nil
}
