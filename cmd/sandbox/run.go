package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/billing/internal/sandbox/run"
)

const (
	// onceRecords and onceTimeout are the defaults of a finite run.
	onceRecords = 10_000
	onceTimeout = 10 * time.Minute
)

type runFlags struct {
	options    run.Options
	once       bool
	asJSON     bool
	faults     string
	ignoreKeys bool
}

func runWorldCommand(std streams) *cobra.Command {
	flags := &runFlags{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Everything at once: broker, database, provider, billing, orders, and a judged closing table",
		Long: "Everything at once: a broker, a private PostgreSQL, a payment provider, `billing serve`\n" +
			"as child processes, and a stream of orders of which a fifth are duplicates. It runs\n" +
			"until Ctrl-C, or with --once until everything is charged, and then prints a table in\n" +
			"which every figure is held against another witness: the topic, billing's tables, the\n" +
			"provider's ledger. It exits 0 only when all of them agree.\n\n" +
			"With --kills billing runs with short times, so that a dead process is soon replaced:\n" +
			"KAFKA_SESSION_TIMEOUT=2s (6s with --brokers), PAYMENT_TIMEOUT=2s, CHARGE_BUDGET=2s;\n" +
			"--env changes them. The provider then takes 2 to 20 ms, unless --fault says otherwise.\n\n" +
			"With --joins the orders are sent so that they last: each time an instance leaves (SIGTERM, and\n" +
			"it must exit 0) or joins, some wait for it, and more come while partitions change hands. The\n" +
			"table says how many of the changes met records in flight. KAFKA_SESSION_TIMEOUT is 6s then.\n" +
			"With --backlog nothing is held back: the instances are as busy as they can be, and records wait\n" +
			"in every partition at each change. Give enough --records: some 40,000 for each join.\n\n" + faultHelp,
		Example: "  sandbox run\n" +
			"  sandbox run --once --kills 10 --instances 2\n" +
			"  sandbox run --once --instances 3 --joins 6 --records 20000 --ignore-keys\n" +
			"  sandbox run --once --instances 3 --joins 8 --backlog --records 300000\n" +
			"  sandbox run --once --orders orders.csv --kills 3 --json\n" +
			"  sandbox run --once --kafka apache\n" +
			"  sandbox run --fault 503-after=0.05,hang=0.01:3s",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.complete(cmd); err != nil {
				return usageError{err}
			}
			return flags.run(cmd, std)
		},
	}
	flags.declare(c)
	return c
}

func (r *runFlags) declare(c *cobra.Command) {
	f, o := c.Flags(), &r.options
	f.BoolVar(&r.once, "once", false, "a finite run: exits 0 when the table is clean, 1 when it is not")
	f.BoolVar(&r.asJSON, "json", false, "the table as JSON on standard output, progress on standard error")
	f.StringVar(&o.Kafka, "kafka", run.KafkaEmbedded, "the broker: embedded, or apache (needs Java 17 and the jars of 'make kafka-jars')")
	f.StringVar(&o.Brokers, "brokers", "", "take an existing Kafka instead, at these bootstrap servers")
	f.StringVar(&o.DatabaseURL, "database-url", "", "take an existing PostgreSQL database instead; it must be empty")
	f.StringVar(&o.Topic, "topic", "orders.confirmed", "the topic; it must be new or empty")
	f.StringVar(&o.Group, "group", "billing-order-confirmed", "the consumer group")
	f.Int32Var(&o.Partitions, "partitions", 6, "partitions of the topic where it is created")
	addSourceFlags(c, &o.Source)
	f.IntVar(&o.Source.Records, "records", 0, fmt.Sprintf("how many records to generate with --once (0: %d)", onceRecords))
	f.IntVar(&o.Instances, "instances", 1, "how many billing processes share the work")
	f.IntVar(&o.Kills, "kills", 0, "kill -9 a billing process so many times while it works, and start it again")
	f.IntVar(&o.Joins, "joins", 0, "so many times tell an instance to end, or let one join, or both, while they work; 1 to --instances run")
	f.BoolVar(&o.Backlog, "backlog", false, "with --joins: send the orders as fast as they go; the table fails where none wait in a partition at a change")
	addFaultFlags(c, &r.faults, &r.ignoreKeys)
	f.DurationVar(&o.Timeout, "timeout", 0, fmt.Sprintf("bound of the whole work (0: %s with --once, none without)", onceTimeout))
	f.BoolVar(&o.Keep, "keep", false, "keep the run's folder: logs and data")
	f.StringVar(&o.Billing, "billing", "", "path of the billing binary (default: beside this one)")
	f.StringArrayVar(&o.Env, "env", nil, "a further NAME=value for billing; may be repeated")
}

// complete fills in what depends on other flags, and checks everything.
func (r *runFlags) complete(cmd *cobra.Command) (err error) {
	o := &r.options
	if !r.once && o.Source.Records != 0 {
		return errors.New("--records needs --once")
	}
	if r.once && o.Source.File == "" && o.Source.Records == 0 {
		o.Source.Records = onceRecords
	}
	if r.once && o.Timeout == 0 {
		o.Timeout = onceTimeout
	}
	if o.Source.Endless() && !cmd.Flags().Changed("rate") {
		o.Source.Rate = ordersDefaultRate
	}
	if !cmd.Flags().Changed("seed") {
		o.Source.Seed = rand.Uint64() //nolint:gosec // a seed, no secret
	}
	if o.Faults, err = parseFaults(r.faults, r.ignoreKeys); err != nil {
		return err
	}
	o.FaultsText, o.Environ = r.faults, os.Environ()
	if o.Billing == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the billing binary: %w", err)
		}
		o.Billing = filepath.Join(filepath.Dir(self), "billing")
	}
	if o.Billing, err = filepath.Abs(o.Billing); err != nil {
		return fmt.Errorf("--billing: %w", err)
	}
	return o.Validate()
}

func (r *runFlags) run(cmd *cobra.Command, std streams) error {
	ctx, broken, cancel := untilBrokenOff(cmd.Context())
	defer cancel()
	r.options.BreakOff = broken.Done()
	out := std.out
	if r.asJSON {
		out = std.err
	}
	console := run.NewConsole(out, term.IsTerminal(int(out.Fd())))
	console.Say("seed        %d", r.options.Source.Seed)
	report, err := run.Run(ctx, r.options, console)
	if err != nil {
		return err
	}
	if r.asJSON {
		if err := report.WriteJSON(std.out); err != nil {
			return err
		}
	} else {
		report.WriteTable(std.out, width(std.out))
	}
	if !report.Clean {
		return exitError{exitFail}
	}
	return nil
}

// width is the number of columns of a terminal; 0: not bounded.
func width(out *os.File) int {
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
