package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
)

// Bounds of billing replay.
const (
	defaultReplayLimit = domain.MaxBulk
	maxReplayLimit     = 100_000
	defaultReplayRate  = 50 // letters a second: what is replayed comes on top of the stream
	maxReplayRate      = 1000
)

// replayFlags are what billing replay is asked for.
type replayFlags struct {
	ids                  []int64
	reason, event        string
	since, until         string
	limit, rate          int
	dryRun, json         bool
	by, why              string
	discard              bool
	outcome, providerKey string
}

func replayCommand(p Process) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay (--id n … | --reason r | --event id | --since t | --until t | --all) --why text",
		Short: "Send dead letters round again, or show what that would do",
		Long: "Sends open dead letters round again: their charges become due, and the worker of any running\n" +
			"service goes on with them. It works on the database directly and sends nothing itself, so that\n" +
			"the same environment as that of the service is needed, of which only DATABASE_URL is required.\n" +
			"Without --id the letters are chosen by filter, the oldest first.\n\n" +
			"With --discard it gives the events of the letters named by --id up; where a charge may have\n" +
			"been sent, --outcome must say what the provider saw.\n\n" +
			"docs/dead-letters.md tells for each reason what it means and what to do.\n\n" +
			"Exit codes: 0 all done, or nothing to do; 1 a letter was refused, is invalid still, or the\n" +
			"database failed; 2 usage or configuration.",
		Example: "  billing replay --reason retries_exhausted --dry-run\n" +
			"  billing replay --reason retries_exhausted --since 2026-03-01T00:00:00Z --why 'the provider is back'\n" +
			"  billing replay --id 12 --discard --outcome not_charged --why 'not found at the provider'",
		Args: cobra.NoArgs,
	}
	all := c.Flags().Bool("all", false, "every open letter, up to --limit")
	c.Flags().Int64SliceVar(&f.ids, "id", nil, "the letter of this id; may be repeated")
	c.Flags().StringVar(&f.reason, "reason", "", "only letters parked for this reason")
	c.Flags().StringVar(&f.event, "event", "", "only letters of this event")
	c.Flags().StringVar(&f.since, "since", "", "only letters parked first then or later (RFC 3339)")
	c.Flags().StringVar(&f.until, "until", "", "only letters parked first before (RFC 3339)")
	c.Flags().IntVar(&f.limit, "limit", defaultReplayLimit, "at most so many letters")
	c.Flags().IntVar(&f.rate, "rate", defaultReplayRate, "letters a second")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would happen to each")
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON object for each letter, one a line, by the names of the admin API")
	c.Flags().StringVar(&f.by, "by", "", "who acts (default: the user of this process)")
	c.Flags().StringVar(&f.why, "why", "", "why; written down with the action; required unless --dry-run")
	c.Flags().BoolVar(&f.discard, "discard", false, "give the events of --id up instead")
	c.Flags().StringVar(&f.outcome, "outcome", "", "what the provider saw: not_charged, charged or unknown; with --discard")
	c.Flags().StringVar(&f.providerKey, "provider-charge-id", "", "the provider's id of the charge; with --outcome charged")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := f.check(*all)
		if err != nil {
			return usageError{err}
		}
		return replay(cmd, p, f, filter)
	}
	return c
}

// check returns the filter that the flags stand for, and every complaint at once.
func (f *replayFlags) check(all bool) (domain.LetterFilter, error) {
	filter := domain.LetterFilter{Reason: domain.Reason(f.reason), Limit: f.limit}
	var complaints []error
	complain := func(when bool, format string, args ...any) {
		if when {
			complaints = append(complaints, fmt.Errorf(format, args...))
		}
	}
	filtered := f.reason != "" || f.event != "" || f.since != "" || f.until != "" || all
	complain(len(f.ids) > 0 && filtered, "--id names the letters; a filter would choose others")
	complain(len(f.ids) == 0 && !filtered, "which letters? --id, --reason, --event, --since, --until or --all")
	complain(slices.ContainsFunc(f.ids, func(id int64) bool { return id < 1 }), "--id: must be above zero")
	complain(f.reason != "" && !filter.Reason.Valid(), "--reason: %q is none of %v", f.reason, domain.Reasons())
	complain(f.limit < 1 || f.limit > maxReplayLimit, "--limit: must be from 1 to %d", maxReplayLimit)
	complain(f.rate < 1 || f.rate > maxReplayRate, "--rate: must be from 1 to %d", maxReplayRate)
	complain(strings.TrimSpace(f.why) == "" && !f.dryRun, "--why is required: it is written down with the action")
	complain(f.discard && len(f.ids) == 0, "--discard needs --id: nothing is given up by filter")
	complain(!f.discard && (f.outcome != "" || f.providerKey != ""), "--outcome and --provider-charge-id go with --discard")
	complain(f.outcome != "" && !slices.Contains(domain.Outcomes(), domain.Outcome(f.outcome)), "--outcome: must be one of %v", domain.Outcomes())
	var err error
	if f.event != "" {
		filter.EventID, err = uuid.Parse(f.event)
		complain(err != nil, "--event: %q is not a UUID", f.event)
	}
	for name, at := range map[string]struct {
		text string
		into *time.Time
	}{"--since": {f.since, &filter.Since}, "--until": {f.until, &filter.Until}} {
		if at.text != "" {
			*at.into, err = time.Parse(time.RFC3339, at.text)
			complain(err != nil, "%s: %q is not a time of RFC 3339", name, at.text)
		}
	}
	if f.dryRun && f.why == "" {
		f.why = "dry run"
	}
	f.by = cmp.Or(f.by, userName())
	return filter, errors.Join(complaints...)
}

// userName is who runs this process, for the audit trail.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "billing replay"
}

// replay acts on the letters one by one, and tells of each.
func replay(cmd *cobra.Command, p Process, f replayFlags, filter domain.LetterFilter) (err error) {
	settings, err := LoadOffline(p.Environ)
	if err != nil {
		return usageError{fmt.Errorf("configuration:\n%w", err)}
	}
	log, err := p.commandLogger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	s, err := store.New(settings.store())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := cmd.Context()
	if err := s.CheckSchema(ctx); err != nil {
		return err
	}
	finder, hangUp, err := settings.lookUps(p)
	if err != nil {
		return err
	}
	defer hangUp()
	operator := domain.NewOperator(settings.policy(owner()), domain.Decoder{RequireV7: settings.Flow.RequireUUIDv7},
		s, s, finder, domain.SystemClock{}, log)
	report := newReplayReport(cmd.OutOrStdout(), cmd.ErrOrStderr(), f)
	pace := rate.NewLimiter(rate.Limit(f.rate), 1)
	if len(f.ids) > 0 {
		err = replayEach(ctx, operator, f, pace, report.add)
	} else {
		err = operator.ReplayAll(ctx, filter, f.by, f.why, f.dryRun, pace, report.add)
	}
	return errors.Join(err, report.end())
}

// replayEach acts on the letters that are named.
func replayEach(ctx context.Context, operator *domain.Operator, f replayFlags, pace domain.Pacer, tell func(domain.Bulk)) error {
	for _, id := range f.ids {
		if err := pace.Wait(ctx); err != nil {
			return fmt.Errorf("stopped before dead letter %d: %w", id, err)
		}
		i := domain.Instruction{LetterID: id, Kind: domain.ActionReplay, By: f.by, Why: f.why}
		if f.discard {
			i.Kind, i.Outcome, i.ProviderChargeID = domain.ActionDiscard, domain.Outcome(f.outcome), f.providerKey
		}
		b := domain.Bulk{LetterID: id}
		switch {
		case f.dryRun:
			b.Plan, b.Err = operator.Plan(ctx, i)
		case f.discard:
			b.Plan.Done, b.Err = operator.Discard(ctx, i)
		default:
			b.Plan.Done, b.Err = operator.Replay(ctx, id, f.by, f.why)
		}
		tell(b)
	}
	return nil
}
