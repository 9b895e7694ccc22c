package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// drop removes ranges without rows. Whoever waits for that lock holds up every batch
// behind it: so it waits briefly, a few times in a turn, and seldom while it is in vain.
func (t *turn) drop(ctx context.Context, spent spent, leaves []domain.Leaf) {
	failures := 0
	for i := range leaves {
		leaf := &leaves[i]
		if t.dry {
			t.wouldDrop(leaf)
			continue
		}
		if t.now.Before(t.dropAt) || failures == tries || spent.already() {
			t.stays(leaf)
			continue
		}
		failures += t.dropOne(ctx, leaf, tries-failures)
	}
	switch {
	case failures == tries:
		t.dropRest = min(max(2*t.dropRest, t.cfg.Every), dropRest)
		t.dropAt = t.now.Add(t.dropRest)
	case t.report.Dropped > 0:
		t.dropRest, t.dropAt = 0, time.Time{}
	}
}

func (t *turn) wouldDrop(leaf *domain.Leaf) {
	if leaf.Empty {
		t.notes[leaf.Table] = note{domain.RangeEmptied, "would be dropped"}
		t.report.Dropped++
	}
}

// dropOne returns how often the lock was not to be had.
func (t *turn) dropOne(ctx context.Context, leaf *domain.Leaf, tries int) (failures int) {
	for failures < tries {
		err := t.parts.Table.Drop(ctx, *leaf, t.cfg.Patience)
		switch {
		case err == nil:
			t.report.Dropped++
			delete(t.notes, leaf.Table)
			t.lost = append(t.lost, domain.RetentionRange{Span: leaf.Span, Table: leaf.Table, State: domain.RangeDropped})
			return failures
		case errors.Is(err, domain.ErrNotEmpty):
			return failures // late rows: emptied again in another turn, or deleted one by one
		case !errors.Is(err, domain.ErrBusy):
			t.errs = append(t.errs, err)
			return failures
		}
		failures++
		if failures < tries && !pauseFor(ctx, 10*t.cfg.Pause) {
			return failures
		}
	}
	t.stays(leaf)
	return failures
}

// stays notes why a range without rows is still there.
func (t *turn) stays(leaf *domain.Leaf) {
	if t.cfg.Mode == domain.RetainByPartition {
		t.notes[leaf.Table] = note{domain.RangeEmptied, "open batches hold the table; it is dropped when a short lock allows"}
	}
}

// delete removes rows one by one, by the time they were written.
func (t *turn) delete(ctx context.Context, spent spent, leaves []domain.Leaf) {
	for i := range leaves {
		if spent.already() {
			return // the rest another time
		}
		if err := t.deleteFrom(ctx, spent, &leaves[i]); err != nil {
			t.errs = append(t.errs, err)
			return
		}
	}
}

func (t *turn) deleteFrom(ctx context.Context, spent spent, leaf *domain.Leaf) error {
	limit := 1
	if t.dry {
		limit = counted
	}
	found, err := t.parts.Table.Overdue(ctx, *leaf, t.cutoff, limit)
	if err != nil {
		return err
	}
	if found.Kept > 0 {
		t.keep(leaf, found.KeptSince, fmt.Sprintf("rows of %d unfinished intents stay, the first of event %s", found.Kept, found.KeptFirst))
	}
	if found.Rows == 0 {
		return nil
	}
	if why := t.hold.before(ctx, t.cutoff); why != "" {
		t.keep(leaf, found.Oldest, "nothing is deleted: "+why)
		return nil
	}
	if t.dry {
		t.report.Deleted += int64(found.Rows)
		return nil
	}
	for from := found.Oldest; ; {
		n, next, err := t.parts.Table.Delete(ctx, *leaf, from, t.cutoff, t.cfg.Batch)
		t.report.Deleted += int64(n)
		if err != nil || n < t.cfg.Batch || spent.already() || !pauseFor(ctx, t.cfg.Pause) {
			return err
		}
		from = next
	}
}

// keep notes that rows of a leaf which were written at an instant, and are due, stay. A range
// says so itself, as where ranges are emptied whole; one that is not ours stays foreign.
func (t *turn) keep(leaf *domain.Leaf, written time.Time, why string) {
	t.since(written.Add(t.report.Retention))
	if leaf.Default {
		d := &t.report.Default
		d.Blocked, d.Why = true, also(d.Why, why)
		return
	}
	n := note{domain.RangeBlocked, also(t.notes[leaf.Table].why, why)}
	if !leaf.Ours {
		n.state = domain.RangeForeign
	}
	t.notes[leaf.Table] = n
}

// also puts a reason behind another.
func also(first, why string) string {
	if first == "" {
		return why
	}
	return first + "; " + why
}
