package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/billing/internal/audit"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
	"example.com/billing/internal/store"
)

// Bounds and defaults of billing audit.
const (
	auditRecheck     = 2 * time.Second
	auditFindings    = 100
	maxAuditFindings = 100_000
	auditLookupRate  = 200 // questions to the provider a second
	maxLookupRate    = 100_000
)

// auditFlags are what the command was asked.
type auditFlags struct {
	since, until string
	from, to     []string
	asJSON       bool
	list         bool
	findings     int
	noProvider   bool
	lookupRate   int
}

func auditCommand(p Process) *cobra.Command {
	flags := &auditFlags{}
	c := &cobra.Command{
		Use:   "audit",
		Short: "Prove what became of every record: nothing lost, nothing twice",
		Long: "Reads the topic beside the group, without joining it, and finds for each offset its one terminal record:\n" +
			"captured, declined, a duplicate, duplicate_order, unfinished, parked, discarded. What the group has not\n" +
			"committed yet is counted apart. Then it holds charges, intents and processed_event against the topic and,\n" +
			"with PAYMENT_LOOKUP=true, every charge against the provider by our own key. It changes nothing and may run\n" +
			"beside the service. It takes the environment of `billing serve`; docs/audit.md says how to read it.\n\n" +
			"Exit codes: 0 clean, 1 a finding or a failure, 2 usage or configuration.",
		Example: "  billing audit\n" +
			"  billing audit --since 2026-11-29T00:00:00Z --until 2026-11-30T00:00:00Z --json\n" +
			"  billing audit --from-offset 3:17000 --to-offset 3:18000 --list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := Load(p.Environ)
			if err != nil {
				return usageError{fmt.Errorf("configuration:\n%w", err)}
			}
			options, err := flags.options(&settings)
			if err != nil {
				return usageError{err}
			}
			return runAudit(cmd.Context(), settings, p, flags, options)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.since, "since", "", "records at or after this time (RFC 3339)")
	f.StringVar(&flags.until, "until", "", "records before this time (RFC 3339)")
	f.StringArrayVar(&flags.from, "from-offset", nil, "first offset of a partition, as partition:offset; may be repeated, and leaves out partitions that are not named")
	f.StringArrayVar(&flags.to, "to-offset", nil, "offset behind the last one, likewise")
	f.BoolVar(&flags.asJSON, "json", false, "the report as JSON on standard output, by the names of the admin API")
	f.BoolVar(&flags.list, "list", false, "a line for every offset first: its terminal record (JSON lines with --json)")
	f.IntVar(&flags.findings, "findings", auditFindings, "how many findings are shown; all are counted")
	f.BoolVar(&flags.noProvider, "no-provider", false, "do not ask the provider, though PAYMENT_LOOKUP is true")
	f.IntVar(&flags.lookupRate, "lookup-rate", auditLookupRate, "questions to the provider per second, at most")
	return c
}

// options checks the flags and translates them.
func (f *auditFlags) options(s *Settings) (audit.Options, error) {
	o := audit.Options{
		Group: s.Kafka.GroupID, Retention: s.Flow.DedupRetention, Keep: f.findings, Recheck: auditRecheck,
	}
	var complaints []error
	read := func(err error) { complaints = append(complaints, err) }
	var err error
	o.Since, err = instant("--since", f.since)
	read(err)
	o.Until, err = instant("--until", f.until)
	read(err)
	o.From, err = offsetPairs("--from-offset", f.from)
	read(err)
	o.To, err = offsetPairs("--to-offset", f.to)
	read(err)
	if !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until) {
		read(errors.New("--since must be before --until"))
	}
	for partition, to := range o.To {
		if from, ok := o.From[partition]; ok && from >= to {
			read(fmt.Errorf("--from-offset %d:%d must be below --to-offset %d:%d", partition, from, partition, to))
		}
	}
	if f.findings < 1 || f.findings > maxAuditFindings {
		read(fmt.Errorf("--findings %d: want 1 to %d", f.findings, maxAuditFindings))
	}
	if f.lookupRate < 1 || f.lookupRate > maxLookupRate {
		read(fmt.Errorf("--lookup-rate %d: want 1 to %d", f.lookupRate, maxLookupRate))
	}
	return o, errors.Join(complaints...)
}

func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %q: want RFC 3339, such as 2026-11-29T12:00:00Z", flag, text)
	}
	return at, nil
}

// offsetPairs reads partition:offset pairs.
func offsetPairs(flag string, pairs []string) (map[int32]int64, error) {
	found := map[int32]int64{}
	for _, pair := range pairs {
		left, right, _ := strings.Cut(pair, ":")
		partition, err := strconv.ParseInt(left, 10, 32)
		offset, offsetErr := strconv.ParseInt(right, 10, 64)
		if err != nil || offsetErr != nil || partition < 0 || offset < 0 {
			return nil, fmt.Errorf("%s %q: want partition:offset, such as 3:17000", flag, pair)
		}
		if _, twice := found[int32(partition)]; twice {
			return nil, fmt.Errorf("%s %q: partition %d is given twice", flag, pair, partition)
		}
		found[int32(partition)] = offset
	}
	return found, nil
}

// runAudit audits, shows the report and returns an error when it is not clean.
func runAudit(ctx context.Context, s Settings, p Process, f *auditFlags, o audit.Options) error {
	log, err := p.commandLogger(p.Err)
	if err != nil {
		return err
	}
	w, err := s.witnesses(log)
	if err != nil {
		return err
	}
	finder, hangUp, err := s.lookUps(p)
	if err != nil {
		return errors.Join(err, w.close())
	}
	defer hangUp()
	if f.noProvider {
		finder = nil
	}
	screen := newAuditScreen(p.Err)
	o.Progress = screen.show
	var listed error
	if f.list {
		o.Each = func(outcome audit.Outcome) { listed = errors.Join(listed, writeOutcome(p.Out, &outcome, f.asJSON)) }
	}
	if o.Position, err = w.positions(ctx, &s); err != nil {
		return errors.Join(err, w.close())
	}
	report, err := audit.New(o, w.topic, w.books, paced(finder, f.lookupRate), domain.SystemClock{}).Run(ctx, s.Kafka.Topic)
	screen.done()
	err = errors.Join(err, listed, w.close())
	switch {
	case errors.Is(err, audit.ErrRange):
		return usageError{err}
	case err != nil:
		return err
	}
	return showAudit(p.Out, &report, f.asJSON)
}

// witnesses are whom an audit asks.
type witnesses struct {
	topic *kafka.AuditReader
	books *store.Store
}

func (s *Settings) witnesses(log *slog.Logger) (*witnesses, error) {
	books, err := store.New(s.store())
	if err != nil {
		return nil, err
	}
	topic, err := kafka.NewAuditReader(s.kafka(), log, domain.SystemClock{})
	if err != nil {
		return nil, errors.Join(err, books.Close())
	}
	w := &witnesses{topic: topic, books: books}
	return w, nil
}

// positions are the group's, where the database keeps them.
func (w *witnesses) positions(ctx context.Context, s *Settings) (map[int32]int64, error) {
	if s.Flow.OffsetStore != inPostgres {
		return nil, nil //nolint:nilnil // no positions
	}
	rows, err := w.books.Offsets("").List(ctx, s.Kafka.GroupID, s.Kafka.Topic)
	if err != nil {
		return nil, err
	}
	positions := map[int32]int64{}
	for _, row := range rows {
		positions[row.Partition] = row.Next
	}
	return positions, nil
}

func (w *witnesses) close() error { return errors.Join(w.topic.Close(), w.books.Close()) }

// showAudit writes the report and returns an error when it is not clean.
func showAudit(out io.Writer, r *audit.Report, asJSON bool) error {
	write := writeAuditTable
	if asJSON {
		write = writeAuditJSON
	}
	if err := write(out, r); err != nil {
		return err
	}
	if r.Clean() {
		return nil
	}
	var kinds []string
	for _, p := range slices.Sorted(maps.Keys(r.Problems)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", r.Problems[p], p))
	}
	return fmt.Errorf("audit: %d findings: %s", r.Total, strings.Join(kinds, ", "))
}
