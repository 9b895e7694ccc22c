package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// resetFlags are those of billing offsets reset.
type resetFlags struct {
	to          string
	partitions  []int32
	dryRun, yes bool
	skipUnread  bool
}

func offsetsReset(p Process) *cobra.Command {
	var f resetFlags
	c := &cobra.Command{
		Use:   "reset --to earliest|latest|OFFSET|TIME",
		Short: "Have the group go on somewhere else; it must have no live members",
		Long: "Sets where the group goes on, in the database where OFFSET_STORE=postgres, and in Kafka. Records that are read again are\n" +
			"duplicates: nothing is charged twice. Records that are skipped are not charged at all: a reset that goes past records which\n" +
			"the group has not read is refused and says how many of which partitions, unless --skip-unread asks for it. They are counted\n" +
			"by offset, from where the group would go on: control records of transactions count among them, and so do records that were\n" +
			"read before the group was set back. The group must have no live members.\n" +
			"A time such as 2026-01-31T12:00:00Z means the first record that is not older.\n\n" +
			"Exit codes: 0 done, or shown by --dry-run, also where it says that it would be refused; 1 refused, or the brokers or the\n" +
			"database did not answer; 2 usage or configuration.",
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
	c.Flags().BoolVar(&f.skipUnread, "skip-unread", false, "go past records that were never read: they are not charged")
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
	refusals := now.refusals(changes, f)
	said := "would reset"
	if !f.dryRun {
		if len(refusals) > 0 {
			return refusals[0]
		}
		if err := o.apply(ctx, changes); err != nil {
			return err
		}
		said = "reset"
	}
	for _, c := range changes {
		fmt.Fprintf(out, "%s %s/%d from %s to %d%s\n", said, now.Topic, c.Partition, orDash(c.From), c.To, c.skipping())
	}
	for _, refusal := range refusals {
		fmt.Fprintf(out, "it would be refused now: %v\n", refusal)
	}
	return nil
}

// refusals are the reasons not to carry the changes out as things stand.
func (r *OffsetsReport) refusals(changes []change, f resetFlags) (all []error) {
	if r.Members > 0 {
		all = append(all, fmt.Errorf("group %s has %d live members; stop them first", r.Group, r.Members))
	}
	var skipped []string
	for _, c := range changes {
		if c.Unread > 0 {
			skipped = append(skipped, fmt.Sprintf("%d of %s/%d", c.Unread, r.Topic, c.Partition))
		}
	}
	if len(skipped) > 0 && !f.skipUnread {
		all = append(all, fmt.Errorf("it goes past unread records, which would never be charged: %s; add --skip-unread if that is meant",
			strings.Join(skipped, ", ")))
	}
	return all
}

// skipping says how many records the change leaves out.
func (c *change) skipping() string {
	if c.Unread == 0 {
		return ""
	}
	return fmt.Sprintf(", past %d unread records", c.Unread)
}
