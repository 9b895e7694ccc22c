package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
	"example.com/billing/internal/store"
)

// retentionWait is how long billing retention run waits for a turn that is under way.
const retentionWait = time.Minute

func retentionCommand(p Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "retention",
		Short: "Forget what is older than DEDUP_RETENTION, or show what that would do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usageError{errors.New("retention needs: run")}
		},
	}
	var dry, shorten, asJSON bool
	run := &cobra.Command{
		Use:   "run [--dry-run]",
		Short: "Make one turn of retention now",
		Long: "Makes one turn of retention now, as the service does by itself every minute, and shows what it found and\n" +
			"did. It may run beside the service, whose turns wait for it. With --dry-run it changes nothing and shows\n" +
			"what a turn would do, and what is kept because something unfinished or unread reaches into it.\n\n" +
			"It takes the environment of `billing serve`, of which DATABASE_URL and KAFKA_BROKERS are required: the\n" +
			"brokers are asked what the groups have not consumed yet. docs/retention.md tells the rest.\n\n" +
			"Where DEDUP_RETENTION is shorter than what is kept so far it refuses, but for a dry run: a shell that lacks\n" +
			"the service's setting would empty months for good. --shorten says that it is meant, and lets the services\n" +
			"keep for as short a time, which they do not by themselves.\n\n" +
			"Exit codes: 0 done, whatever is kept; 1 something failed, or another turn did not end within a minute;\n" +
			"2 usage or configuration.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := Load(withoutProvider(p.Environ))
			if err != nil {
				return usageError{fmt.Errorf("configuration:\n%w", err)}
			}
			report, err := retain(cmd, p, &settings, dry, shorten)
			if report.StartedAt.IsZero() {
				return err // there was no turn
			}
			return errors.Join(err, showRetention(cmd.OutOrStdout(), &report, asJSON))
		},
	}
	run.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done, and what is kept")
	run.Flags().BoolVar(&shorten, "shorten", false, "forget earlier than was done so far, and let the services do so")
	run.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON, by the names and units of the admin API")
	c.AddCommand(run)
	return c
}

// withoutProvider adds a harmless provider where none is given: it is not asked.
func withoutProvider(environ []string) []string {
	for _, v := range environ {
		if strings.HasPrefix(v, "PAYMENT_URL=") {
			return environ
		}
	}
	return append(slices.Clip(environ), "PAYMENT_URL="+standIns()["PAYMENT_URL"])
}

// retain makes one turn.
func retain(cmd *cobra.Command, p Process, s *Settings, dry, shorten bool) (report domain.RetentionReport, err error) {
	log, err := p.commandLogger(cmd.ErrOrStderr())
	if err != nil {
		return report, err
	}
	books, err := store.New(s.store())
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, books.Close()) }()
	if err := books.CheckSchema(cmd.Context()); err != nil {
		return report, err
	}
	f, err := newForgetting(s, books, "billing retention run on "+owner(), nil, retention.Parts{Clock: domain.SystemClock{}, Logger: log})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	report, err = f.keeper.Once(cmd.Context(), retention.ByHand{Dry: dry, Shorten: shorten}, retentionWait)
	if errors.Is(err, retention.ErrShorter) {
		return report, usageError{fmt.Errorf("DEDUP_RETENTION: %w: set what the service has, or say --shorten", err)}
	}
	return report, err
}

// showRetention writes the report of a turn.
func showRetention(out io.Writer, r *domain.RetentionReport, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(admin.ViewRetention(r)); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"from", "to", "rows (about)", "MiB", "state", "why"})
	for i := range r.Ranges {
		g := &r.Ranges[i]
		t.AppendRow(table.Row{g.From.Format(time.DateOnly), g.To.Format(time.DateOnly), about(g.Rows), mebibytes(g.Bytes), g.State, g.Why})
	}
	rest := "kept"
	if r.Default.Blocked {
		rest = string(domain.RangeBlocked)
	}
	others := "all others"
	if len(r.Ranges) == 0 {
		others = "all" // RETENTION_MODE=delete on a table that never had ranges
	}
	t.AppendRow(table.Row{others, "", about(r.Default.Rows), mebibytes(r.Default.Bytes), rest, r.Default.Why})
	_, err := fmt.Fprintf(out, "%s\n%s\n", t.Render(), retentionSummary(r))
	return err
}

// about is an estimate of rows; a dash where the planner has none yet.
func about(rows int64) string {
	if rows < 0 {
		return "-"
	}
	return strconv.FormatInt(rows, 10)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

// retentionSummary says in words what a turn came to.
func retentionSummary(r *domain.RetentionReport) string {
	lines := []string{fmt.Sprintf("RETENTION_MODE=%s, RETENTION_RANGE=%s, DEDUP_RETENTION=%s", r.Mode, r.Width, r.Retention)}
	if r.Next != nil {
		lines = append(lines, fmt.Sprintf("next: %s to %s is due at %s", r.Next.From.Format(time.DateOnly), r.Next.To.Format(time.DateOnly), r.Next.At.Format(time.RFC3339)))
	}
	for i := range r.Chores {
		c := &r.Chores[i]
		line := fmt.Sprintf("%s: %d rows removed", c.Name, c.Removed)
		if c.Error != "" {
			line += ", failed"
		}
		lines = append(lines, line)
	}
	if r.DryRun && r.Retention < r.Floor {
		lines = append(lines, fmt.Sprintf("it would be refused now: what is kept so far is %s; --shorten says that less is meant", r.Floor))
	}
	verb := "done"
	if r.DryRun {
		verb = "dry run, nothing was changed; a turn would do"
	}
	return strings.Join(append(lines, fmt.Sprintf(
		"%s: %d ranges attached (%d rows moved), %d emptied (about %d rows), %d dropped, %d rows deleted one by one",
		verb, r.Attached, r.Moved, r.Emptied, r.Removed, r.Dropped, r.Deleted)), "\n")
}
