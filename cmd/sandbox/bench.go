package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/sandbox/bench"
)

const (
	benchRounds     = 3
	benchPartitions = 6
	benchTimeout    = 45 * time.Minute
)

type benchFlags struct {
	options bench.Options
	asJSON  bool
	write   string
	timeout time.Duration
}

func benchCommand(std streams) *cobra.Command {
	flags := &benchFlags{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure billing: throughput, latency, memory, each beside what it is compared with",
		Long: "Measure billing: throughput, latency, memory, each beside what it is compared with.\n\n" +
			"It starts a broker, a PostgreSQL with real fsync, a provider and `billing serve`, each in\n" +
			"a process of its own, and does the same work three ways in the same run: the payment\n" +
			"client with nothing around it (ceiling), one event per transaction and one at a time per\n" +
			"partition (sequential), and billing as it is. A run whose sums are wrong is void, and the\n" +
			"exit code is 1 then; a goal that is missed on this machine is only shown.\n\n" +
			"Scenarios: " + strings.Join(bench.Names(), ", ") + ".",
		Example: "  sandbox bench --only 0ms --scale 0.2\n  sandbox bench --write docs/benchmarks.md",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.complete(); err != nil {
				return usageError{err}
			}
			return flags.run(cmd, std)
		},
	}
	f, o := c.Flags(), &flags.options
	f.StringSliceVar(&o.Only, "only", nil, "only these scenarios, a comma list")
	f.BoolVar(&o.Growth, "growth", false, "the set of growth: rows in processed_event, partitions")
	f.BoolVar(&o.Retention, "retention", false, "the set of retention: ranges against a plain table, emptying a day under load, the statistics at ten million rows")
	f.Float64Var(&o.Scale, "scale", 1, "multiplies the numbers of records")
	f.IntVar(&o.Rounds, "rounds", benchRounds, "how often short runs are repeated; the median counts")
	f.Int32Var(&o.Partitions, "partitions", benchPartitions, "partitions of the topic")
	f.StringVar(&o.Dir, "dir", "", "folder for the data of broker and database while it runs: the disk that is measured")
	f.StringVar(&o.Billing, "billing", "", "path of the billing binary (default: beside this one)")
	f.BoolVar(&flags.asJSON, "json", false, "everything measured as JSON on standard output")
	f.StringVar(&flags.write, "write", "", "write table and machine into this Markdown file, and what the plot needs beside it")
	f.DurationVar(&flags.timeout, "timeout", benchTimeout, "bound of the whole")
	return c
}

func (b *benchFlags) complete() error {
	o := &b.options
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the binaries: %w", err)
	}
	o.Sandbox, o.Environ = self, os.Environ()
	if o.Billing == "" {
		o.Billing = filepath.Join(filepath.Dir(self), "billing")
	}
	if o.Billing, err = filepath.Abs(o.Billing); err != nil {
		return fmt.Errorf("--billing: %w", err)
	}
	if b.timeout <= 0 {
		return errors.New("--timeout: want a duration above zero")
	}
	return o.Validate()
}

func (b *benchFlags) run(cmd *cobra.Command, std streams) error {
	ctx, cancel := untilEnded(cmd.Context())
	defer cancel()
	ctx, cancelBound := context.WithTimeoutCause(ctx, b.timeout, fmt.Errorf("the time of --timeout is over (%s)", b.timeout))
	defer cancelBound()
	b.options.Say = func(format string, args ...any) { fmt.Fprintf(std.err, format+"\n", args...) }
	report, err := bench.Measure(ctx, b.options)
	if err != nil {
		return err
	}
	if b.asJSON {
		err = report.WriteJSON(std.out)
	} else {
		report.WriteTable(std.out)
	}
	if err == nil && b.write != "" {
		var data string
		if data, err = report.WriteDocument(b.write, b.options.Section()); err == nil {
			fmt.Fprintf(std.err, "written: %s, %s\n", b.write, data)
		}
	}
	if err != nil {
		return err
	}
	if len(report.Void()) > 0 {
		return exitError{exitFail}
	}
	return nil
}

// benchProviderCommand is the provider of a bench.
func benchProviderCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use: "bench-provider", Hidden: true, Args: cobra.NoArgs,
		Short: "A provider with a meter at its door, for `sandbox bench`",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := untilEnded(cmd.Context())
			defer cancel()
			return bench.ServeProvider(ctx, func(url string) { fmt.Fprintln(std.out, url) })
		},
	}
}

// benchCeilingCommand is the payment client of a bench with nothing around it.
func benchCeilingCommand(std streams) *cobra.Command {
	var o bench.CeilingOptions
	c := &cobra.Command{
		Use: "bench-ceiling", Hidden: true, Args: cobra.NoArgs,
		Short: "The payment client with nothing around it, for `sandbox bench`",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := untilEnded(cmd.Context())
			defer cancel()
			measured, err := bench.MeasureCeiling(ctx, o)
			if err != nil {
				return err
			}
			return json.NewEncoder(std.out).Encode(measured)
		},
	}
	c.Flags().StringVar(&o.URL, "url", "", "the provider")
	c.Flags().IntVar(&o.Requests, "requests", 0, "how many requests")
	c.Flags().IntVar(&o.Width, "width", 1, "how many at a time")
	c.Flags().Uint64Var(&o.Seed, "seed", 0, "which orders")
	return c
}
