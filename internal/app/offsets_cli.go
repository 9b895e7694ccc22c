package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func offsetsCommand(p Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "offsets",
		Short: "Show where the consumer group stands, or reset it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usageError{errors.New("offsets needs one of: show, reset")}
		},
	}
	c.AddCommand(offsetsShow(p), offsetsReset(p))
	return c
}

func offsetsShow(p Process) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Print each partition's position, in the database and in Kafka, and its lag",
		Long: "Prints where the group goes on, partition by partition: the database's position, the offset committed in Kafka, the\n" +
			"partition's end, and the lag by the store that OFFSET_STORE names; by Kafka's where that has none. Lag counts offsets,\n" +
			"control records of transactions among them. A dash: none. The database is asked where DATABASE_URL is set.\n" +
			"A position outside of the log is told, and the lag is that from the first record, where the group goes on then.\n\n" +
			"Exit codes: 0 shown; 1 the brokers or the database did not answer; 2 usage or configuration.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withOffsets(cmd, p, func(ctx context.Context, o *offsets) error {
				report, err := o.report(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
				}
				return report.print(cmd.OutOrStdout())
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, by the names of the admin API")
	return c
}

func (r *OffsetsReport) print(out io.Writer) error {
	fmt.Fprintf(out, "topic %s, group %s, %d members, OFFSET_STORE=%s\n", r.Topic, r.Group, r.Members, r.OffsetStore)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "partition\tdatabase\tkafka\tend\tlag\t")
	for _, p := range r.Partitions {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%d\t\n", p.Partition, orDash(p.Database), orDash(p.Kafka), p.End, p.Lag)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range r.Partitions {
		if p.Lost {
			fmt.Fprintf(out, "%s/%d: the position lies outside of the log, which holds %d to %d: the group goes on at %[3]d\n", r.Topic, p.Partition, p.First, p.End)
		}
	}
	return nil
}

func orDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
