package retention

import (
	"context"
	"errors"
	"time"

	"example.com/billing/internal/domain"
)

// turn is one turn under way.
type turn struct {
	*Keeper
	now     time.Time
	cutoff  time.Time // what is older is to be forgotten
	dry     bool
	shorten bool // whoever makes it by hand says that a shorter keeping is meant
	leads   bool // it is a leader's, not one by hand
	report  domain.RetentionReport
	notes   map[string]note         // by table: what was found of a range that is due
	lost    []domain.RetentionRange // ranges that are no tables: missing or dropped
	hold    hold
	errs    []error
}

// note is a finding about a range.
type note struct {
	state domain.RangeState
	why   string
}

// turn makes one turn. The report says what was done, whatever failed; the error, too,
// says what did.
func (k *Keeper) turn(ctx context.Context, now time.Time, how ByHand) (domain.RetentionReport, error) {
	t := &turn{
		Keeper: k, dry: how.Dry, shorten: how.Shorten, leads: k.Status().Leading, notes: map[string]note{},
		report: domain.RetentionReport{
			Instance: k.cfg.Instance, DryRun: how.Dry, Mode: k.cfg.Mode, Width: string(k.cfg.Width), Retention: k.cfg.Retention,
		},
	}
	agreed := t.setTime(ctx, now)
	if agreed {
		err := t.agree(ctx)
		if errors.Is(err, ErrShorter) {
			return domain.RetentionReport{}, err
		}
		if agreed = err == nil; err != nil {
			t.errs = append(t.errs, err)
		}
	}
	if agreed {
		t.ranges(ctx)
		t.chores(ctx)
	}
	saving := !t.dry && t.holds(ctx) && agreed // else what was agreed on before would be lost
	t.report.FinishedAt = t.now.Add(k.parts.Clock.Now().Sub(now)).UTC()
	err := joined(t.errs)
	if err != nil {
		t.report.Error = err.Error()
	}
	if t.dry {
		return t.report, err
	}
	k.metrics.told(ctx, &t.report)
	if saving {
		err = errors.Join(err, k.save(ctx, &t.report))
	}
	return t.report, err
}

func (k *Keeper) save(ctx context.Context, r *domain.RetentionReport) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if did := r.Attached + r.Emptied + r.Dropped + int(r.Deleted+r.Moved); did > 0 {
		k.parts.Logger.InfoContext(ctx, "retention", "attached", r.Attached, "moved", r.Moved,
			"emptied", r.Emptied, "removed", r.Removed, "dropped", r.Dropped, "deleted", r.Deleted)
	}
	return k.parts.Place.Save(ctx, *r)
}

// ranges does what is due on processed_event, and describes how it is then.
func (t *turn) ranges(ctx context.Context) {
	leaves, err := t.parts.Table.Leaves(ctx)
	if err != nil {
		t.errs = append(t.errs, err)
		return
	}
	t.clear(ctx)
	c := t.cfg
	c.Retention = t.report.Retention
	p := makePlan(leaves, t.now, &c)
	// Only as far back as is wanted: what is kept for longer may be of a mode, or a width, that allows for more.
	p.attach = makePlan(leaves, t.now, &t.cfg).attach
	t.within(ctx, func(spent spent) { t.attach(ctx, spent, p.attach) })
	var empty []domain.Leaf
	t.within(ctx, func(spent spent) { empty = t.empty(ctx, spent, p.due) })
	t.within(ctx, func(spent spent) { t.delete(ctx, spent, p.rest) })
	t.within(ctx, func(spent spent) { t.drop(ctx, spent, empty) })
	if leaves, err = t.parts.Table.Leaves(ctx); err != nil {
		t.errs = append(t.errs, err)
		return
	}
	t.describe(leaves)
}

// clear sees to it that no claim is refused because a turn was broken off.
func (t *turn) clear(ctx context.Context) {
	if t.dry {
		return
	}
	err := t.patiently(ctx, func(wait time.Duration) error { return t.parts.Table.Clear(ctx, wait) })
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// spent is closed when the time of a part of a turn is over. It is looked at between
// statements: one that is broken off would cost the session.
type spent <-chan struct{}

func (s spent) already() bool {
	select {
	case <-s:
		return true
	default:
		return false
	}
}

func (t *turn) within(ctx context.Context, do func(spent)) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Budget)
	defer cancel()
	do(ctx.Done())
}

// patiently tries for a lock a few times, a little longer each time.
func (t *turn) patiently(ctx context.Context, do func(wait time.Duration) error) (err error) {
	for try := range tries {
		err = do(time.Duration(try+1) * t.cfg.Patience)
		if !errors.Is(err, domain.ErrBusy) || !pauseFor(ctx, t.cfg.Pause) {
			break
		}
	}
	return err
}

// empty removes the rows of ranges that are due, where nothing may still ask for them,
// and returns the ranges that hold none.
func (t *turn) empty(ctx context.Context, spent spent, leaves []domain.Leaf) (empty []domain.Leaf) {
	if t.cfg.Mode == domain.RetainByDelete {
		return leaves // their rows go one by one; whether any are left is seen by drop
	}
	for i := range leaves {
		leaf := &leaves[i]
		if spent.already() {
			break
		}
		if leaf.Empty || t.emptyOne(ctx, leaf) {
			empty = append(empty, *leaf)
		}
	}
	return empty
}

func (t *turn) emptyOne(ctx context.Context, leaf *domain.Leaf) bool {
	why, err := t.reach(ctx, leaf.Span)
	switch {
	case err != nil:
		t.errs = append(t.errs, err)
		t.notes[leaf.Table] = note{domain.RangeDue, err.Error()}
		return false
	case why != "":
		t.blocked(leaf, why)
		return false
	}
	if !t.dry {
		err = t.patiently(ctx, func(wait time.Duration) error { return t.parts.Table.Empty(ctx, *leaf, wait) })
	}
	switch {
	case err == nil && t.dry:
		t.notes[leaf.Table] = note{domain.RangeDue, "would be emptied"}
	case err == nil:
		t.notes[leaf.Table] = note{domain.RangeEmptied, ""}
	case errors.Is(err, domain.ErrBusy):
		t.notes[leaf.Table] = note{domain.RangeDue, whyBusy}
		return false
	case errors.Is(err, domain.ErrMoved):
		t.blocked(leaf, "an intent in it has become unfinished this instant")
		return false
	default:
		t.errs = append(t.errs, err)
		t.notes[leaf.Table] = note{domain.RangeDue, err.Error()}
		return false
	}
	t.report.Emptied++
	t.report.Removed += leaf.Rows
	return true
}

func (t *turn) blocked(leaf *domain.Leaf, why string) {
	t.notes[leaf.Table] = note{domain.RangeBlocked, why}
	t.since(leaf.Span.To.Add(t.report.Retention))
}

// since remembers since when the oldest of what is blocked has been due.
func (t *turn) since(at time.Time) {
	if b := &t.report.BlockedSince; b.IsZero() || at.Before(*b) {
		*b = at.UTC()
	}
}
