package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/sandbox/orders"
	"example.com/billing/internal/sandbox/run"
)

// ordersDefaultRate is what an endless stream goes at.
const ordersDefaultRate = 20

type ordersFlags struct {
	brokers    string
	topic      string
	partitions int32
	source     run.Source
}

func ordersCommand(std streams) *cobra.Command {
	var flags ordersFlags
	c := &cobra.Command{
		Use:   "orders",
		Short: "Produce confirmed orders, duplicates among them",
		Long: "Produce confirmed orders, duplicates among them: a number of generated ones (--records),\n" +
			"those of a CSV file (--orders), or an endless stream. The topic is created where it is\n" +
			"missing. At the end one line of JSON on standard output says what was sent: the sums\n" +
			"are those of the unique orders, in minor units.",
		Example: "  sandbox orders --brokers 127.0.0.1:9092 --records 10000 --duplicates 0.2\n" +
			"  sandbox orders --brokers 127.0.0.1:9092 --orders orders.csv",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.brokers == "" {
				return usageError{errors.New("--brokers is needed")}
			}
			if flags.source.Endless() && !cmd.Flags().Changed("rate") {
				flags.source.Rate = ordersDefaultRate
			}
			// Orders of an earlier stream into the same topic must not be charged again under the same id.
			if flags.source.FirstOrder == 0 {
				flags.source.FirstOrder = time.Now().UnixMilli()
			}
			if !cmd.Flags().Changed("seed") {
				flags.source.Seed = rand.Uint64() //nolint:gosec // a seed, no secret
			}
			producer, err := run.NewProducer(flags.source)
			if err != nil {
				return usageError{err}
			}
			return produceOrders(cmd.Context(), std, flags, producer)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.brokers, "brokers", "", "bootstrap servers, a comma list")
	f.StringVar(&flags.topic, "topic", "orders.confirmed", "the topic")
	f.Int32Var(&flags.partitions, "partitions", 6, "partitions of the topic where it is created")
	addSourceFlags(c, &flags.source)
	f.IntVar(&flags.source.Records, "records", 0, "how many records to generate (0: an endless stream)")
	f.Int64Var(&flags.source.FirstOrder, "first-order", 0, "id of the first generated order (0: the time in ms)")
	return c
}

func addSourceFlags(c *cobra.Command, source *run.Source) {
	f := c.Flags()
	f.StringVar(&source.File, "orders", "", "CSV file of orders: order_id,total_amount,currency")
	f.Float64Var(&source.Duplicates, "duplicates", 0.2, "share of all records that are duplicates, half of them byte for byte, half encoded anew")
	f.Float64Var(&source.Conflicts, "conflicts", 0, "share of all records that give the id of an event another amount, later on")
	f.Float64Var(&source.Invalid, "invalid", 0, "share of all records that hold no valid event")
	f.Float64Var(&source.Rate, "rate", 0, fmt.Sprintf("records per second (0: as fast as they go; an endless stream: %d)", ordersDefaultRate))
	f.Uint64Var(&source.Seed, "seed", 0, "repeats the orders of an earlier run (default: another one each time)")
}

// sentSummary is the line that says what was sent.
type sentSummary struct {
	Topic       string            `json:"topic"`
	Records     int64             `json:"records"`
	Unique      int64             `json:"unique"`
	Same        int64             `json:"same_record"`
	Republished int64             `json:"republished"`
	Conflicting int64             `json:"conflicting"`
	Invalid     int64             `json:"invalid"`
	Sums        map[string]string `json:"sums_minor"`
}

func produceOrders(ctx context.Context, std streams, flags ordersFlags, producer *run.Producer) error {
	ctx, cancel := untilEnded(ctx)
	defer cancel()
	producer.Brokers, producer.Topic = strings.Split(flags.brokers, ","), flags.topic
	if err := orders.EnsureTopic(ctx, producer.Brokers, flags.topic, flags.partitions); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "sending to %s at %s\n", flags.topic, flags.brokers)
	lastLine := time.Now()
	producer.Progress = func(n int64) {
		if time.Since(lastLine) > 5*time.Second {
			lastLine = time.Now()
			fmt.Fprintf(std.err, "%d records sent\n", n)
		}
	}
	// An endless stream ends after the chunk in progress; what has an end is broken off.
	work := ctx
	if flags.source.Endless() {
		work = context.WithoutCancel(ctx)
	}
	sent, err := producer.Produce(work, ctx.Done())
	if err != nil {
		return err
	}
	summary := sentSummary{flags.topic, sent.Records, sent.Unique, sent.Same, sent.Republished, sent.Conflicting, sent.Invalid, make(map[string]string)}
	for code, minor := range sent.Totals {
		summary.Sums[code] = minor.String()
	}
	return json.NewEncoder(std.out).Encode(summary)
}
