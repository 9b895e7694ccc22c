package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
	"example.com/billing/internal/store"
)

// retentionSilence is how long no turn of retention may have succeeded.
const retentionSilence = 10 * time.Minute

// retention returns the configuration of what forgets.
func (s *Settings) retention(instance string) retention.Config {
	c := retention.DefaultConfig()
	c.Mode, c.Width = domain.RetentionMode(s.Flow.RetentionMode), retention.Width(s.Flow.RetentionRange)
	c.Retention, c.Instance = s.Flow.DedupRetention, instance
	return c
}

// validateRetention complains in terms of the variables.
func (s *Settings) validateRetention() error {
	f := &s.Flow
	errs := []error{
		oneOf("RETENTION_MODE", f.RetentionMode, string(domain.RetainByPartition), string(domain.RetainByDelete)),
		oneOf("RETENTION_RANGE", f.RetentionRange, retention.Widths()...),
	}
	if errors.Join(errs...) == nil && f.RetentionMode == string(domain.RetainByPartition) {
		if err := retention.Width(f.RetentionRange).Validate(f.DedupRetention); err != nil {
			errs = append(errs, fmt.Errorf("RETENTION_RANGE: %w", err))
		}
	}
	return errors.Join(errs...)
}

// forgetting is retention with what it stands on.
type forgetting struct {
	ranges *store.Ranges
	keeper *retention.Keeper
	ended  chan struct{} // closed when Run has ended; nil before it began
}

// newForgetting builds what forgets, on a database whose store is there already.
func newForgetting(s *Settings, books *store.Store, instance string, meters retention.Meters, parts retention.Parts) (*forgetting, error) {
	ranges, err := store.NewRanges(s.store())
	if err != nil {
		return nil, err
	}
	f := &forgetting{ranges: ranges}
	reader, err := newUnreadReader(s, books, parts.Logger)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	parts.Place, parts.Table, parts.Reader, parts.Meters = ranges, ranges, reader, meters
	for _, c := range ranges.Chores() {
		parts.Chores = append(parts.Chores, c)
	}
	if f.keeper, err = retention.New(s.retention(instance), parts); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// firstRanges is how long the first batch waits for the ranges of a new database. Rows
// that come before them would have to be moved while batches wait.
const firstRanges = 5 * time.Second

// start forgets until ctx ends; the returned function waits for the end. It returns when
// new rows have their range, or after a short while without.
func (f *forgetting) start(ctx context.Context) (wait func()) {
	f.ended = make(chan struct{})
	go func() {
		defer close(f.ended)
		f.keeper.Run(ctx)
	}()
	patience := time.NewTimer(firstRanges)
	defer patience.Stop()
	select {
	case <-f.keeper.Ready():
	case <-patience.C:
	case <-ctx.Done():
	}
	return func() { <-f.ended }
}

func (f *forgetting) close() error {
	if f.ended != nil {
		select {
		case <-f.ended:
		default:
			return nil // it did not end in time; the process is about to
		}
	}
	var errs []error
	if f.keeper != nil {
		errs = append(errs, f.keeper.Close())
	}
	return errors.Join(append(errs, f.ranges.Close())...)
}

// checkRetention never fails: nothing depends on what is forgotten, but the size of the
// tables. What it tells may be the work of another instance.
func (a *App) checkRetention(ctx context.Context) admin.Verdict {
	if !a.prepared.Load() {
		return admin.Verdict{Status: admin.StatusOK} // it has nothing to tell, and perhaps no table yet
	}
	report, some, err := a.store.Retention(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "health: retention", "error", err)
		return admin.Verdict{Status: admin.StatusWarn, Reason: "what it did last cannot be read; the log says why"}
	}
	c := a.settings.retention("")
	return retentionVerdict(report, some, a.started, a.clock.Now(), &c)
}

// blockedFor is how long what is due may be blocked before that is shown: as long as a
// range, and a day where rows are deleted one by one.
func blockedFor(c *retention.Config) time.Duration {
	if c.Mode == domain.RetainByDelete {
		return retention.Day.About()
	}
	return c.Width.About()
}

// retentionVerdict is what the report of the latest turn says about the health of retention.
// It is shown without a token: errors may name hosts and users.
func retentionVerdict(r domain.RetentionReport, some bool, started, now time.Time, c *retention.Config) admin.Verdict {
	succeeded := r.SucceededAt
	if !some || succeeded.IsZero() {
		succeeded = started
	}
	var found []admin.Verdict
	warn := func(since time.Time, reason string) {
		found = append(found, admin.Verdict{Status: admin.StatusWarn, Since: since, Reason: reason})
	}
	switch silent := now.Sub(succeeded); {
	case silent > retentionSilence && r.Error != "":
		warn(succeeded, "its turns fail; the log of the instance that does it says why")
	case silent > retentionSilence:
		warn(succeeded, "no instance has done it for "+silent.Round(time.Second).String())
	}
	if !r.BlockedSince.IsZero() && now.Sub(r.BlockedSince) > blockedFor(c) {
		warn(r.BlockedSince, "what is due is kept, since something unfinished or unread reaches into it: "+
			"/api/v1/dedup/stats or billing retention run --dry-run says what")
	}
	if r.Wanted != 0 {
		warn(time.Time{}, fmt.Sprintf(
			"whoever did it last is to keep for %s only, and keeps for %s as before: set its DEDUP_RETENTION back, or confirm it by billing retention run --shorten", r.Wanted, r.Retention))
	}
	if some && r.Retention != c.Retention && r.Wanted != c.Retention {
		warn(time.Time{}, fmt.Sprintf(
			"whoever did it last keeps for %s what this instance is to keep for %s: the same DEDUP_RETENTION must hold for all that share a database", r.Retention, c.Retention))
	}
	return admin.Worst(found...)
}
