package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// chores lets the others forget, each by itself.
func (t *turn) chores(ctx context.Context) {
	for _, c := range t.parts.Chores {
		if t.dry || ctx.Err() != nil || !t.holds(ctx) {
			return
		}
		t.chore(ctx, c)
	}
}

func (t *turn) chore(ctx context.Context, c Chore) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Budget)
	defer cancel()
	begun := t.parts.Clock.Now()
	removed, err := c.Run(ctx, t.now)
	r := domain.ChoreReport{Name: c.Name(), Removed: removed, Took: t.parts.Clock.Now().Sub(begun)}
	if err != nil {
		err = fmt.Errorf("%s: %w", c.Name(), err)
		r.Error = err.Error()
		t.errs = append(t.errs, err)
	}
	t.report.Chores = append(t.report.Chores, r)
}

// errSucceeded ends a turn whose place another instance has taken.
var errSucceeded = errors.New("another instance does retention by now")

// Bounds of getting a lost place back: the locks of a session that died go with it, in a
// moment.
const (
	regainTries = 20
	regainPause = 50 * time.Millisecond
)

// holds reports whether the turn is still ours, and makes it so again when something
// has cost the session, unless another instance was faster.
func (t *turn) holds(ctx context.Context) bool {
	ok, err := t.regain(ctx)
	for try := 1; try < regainTries && err == nil && !ok && pauseFor(ctx, regainPause); try++ {
		ok, err = t.regain(ctx)
	}
	if err == nil && !ok {
		err = errSucceeded
	}
	if err != nil {
		t.errs = append(t.errs, err)
	}
	return err == nil
}

func (t *turn) regain(ctx context.Context) (bool, error) {
	if t.leads {
		if led, err := t.lead(ctx); err != nil || !led {
			return led, err
		}
	}
	return t.begin(ctx)
}
