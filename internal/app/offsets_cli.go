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
			"partition's end, and the lag by the store that OFFSET_STORE names. Lag counts offsets, control records of\n" +
			"transactions among them. A dash: none. The database is asked where DATABASE_URL is set.",
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
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (r *OffsetsReport) print(out io.Writer) error {
	fmt.Fprintf(out, "topic %s, group %s, %d members, OFFSET_STORE=%s\n", r.Topic, r.Group, r.Members, r.OffsetStore)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "partition\tdatabase\tkafka\tend\tlag\t")
	for _, p := range r.Partitions {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%d\t\n", p.Partition, orDash(p.Database), orDash(p.Kafka), p.End, p.Lag)
	}
	return table.Flush()
}

func orDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// resetFlags are those of billing offsets reset.
type resetFlags struct {
	to          string
	partitions  []int32
	dryRun, yes bool
}

func offsetsReset(p Process) *cobra.Command {
	var f resetFlags
	c := &cobra.Command{
		Use:   "reset --to earliest|latest|OFFSET|TIME",
		Short: "Have the group go on somewhere else; it must have no live members",
		Long: "Sets where the group goes on, in the database where OFFSET_STORE=postgres, and in Kafka. Records that are read again are\n" +
			"duplicates: nothing is charged twice. Records that are skipped are not charged at all. The group must have no live members.\n" +
			"A time such as 2026-01-31T12:00:00Z means the first record that is not older.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			to, err := parseTarget(f.to)
			if err == nil && !f.dryRun && !f.yes {
				err = errors.New("nothing was changed: add --yes to reset, or --dry-run to see what would be")
			}
			if err != nil {
				return usageError{err}
			}
			return withOffsets(cmd, p, func(ctx context.Context, o *offsets) error { return o.reset(ctx, cmd.OutOrStdout(), to, f) })
		},
	}
	c.Flags().StringVar(&f.to, "to", "", "earliest, latest, an offset, or an RFC 3339 time")
	c.Flags().Int32SliceVar(&f.partitions, "partition", nil, "only this partition; may be repeated")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would change, and change nothing")
	c.Flags().BoolVar(&f.yes, "yes", false, "do it")
	return c
}

// reset moves the group and says what it changed.
func (o *offsets) reset(ctx context.Context, out io.Writer, to target, f resetFlags) error {
	now, err := o.report(ctx)
	if err != nil {
		return err
	}
	changes, err := o.plan(ctx, to, f.partitions, now)
	if err != nil {
		return err
	}
	if now.Members > 0 && !f.dryRun {
		return fmt.Errorf("group %s has %d live members; stop them first", now.Group, now.Members)
	}
	said := "reset"
	if f.dryRun {
		said = "would reset"
	} else if err := o.apply(ctx, changes); err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprintf(out, "%s %s/%d from %s to %d\n", said, now.Topic, c.Partition, orDash(c.From), c.To)
	}
	if f.dryRun && now.Members > 0 {
		fmt.Fprintf(out, "it would be refused now: the group has %d live members\n", now.Members)
	}
	return nil
}
