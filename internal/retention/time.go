package retention

import (
	"context"
	"fmt"
	"time"
)

// clocksDiffer is by how much this instance's clock and the database's may differ
// before that is trouble.
const clocksDiffer = 5 * time.Minute

// setTime sets the turn's time: the earlier one of this instance's and the database's. So a
// clock that is ahead makes nobody forget too early; for what is forgotten is forgotten for
// all instances. That they differ is told, and keeps nothing from being done. Where the
// database does not say its time, nothing can be.
func (t *turn) setTime(ctx context.Context, ours time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	theirs, err := t.parts.Table.Now(ctx)
	if err != nil {
		t.errs, theirs = append(t.errs, err), ours
	}
	if by := ours.Sub(theirs).Abs(); by > clocksDiffer {
		t.errs = append(t.errs, fmt.Errorf("the clocks of %s and of the database differ by %s: the earlier one counts", t.cfg.Instance, by.Round(time.Second)))
	}
	t.now = ours
	if theirs.Before(ours) {
		t.now = theirs
	}
	t.report.StartedAt = t.now.UTC()
	return err == nil
}
