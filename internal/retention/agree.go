package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// ErrShorter is returned by a turn by hand that would forget what the services keep.
var ErrShorter = errors.New("shorter than what is kept so far")

// floorFor is for how long what was kept last needs no confirmation though another instance
// keeps for longer by now: for the time of a rollout, and of taking it back.
const floorFor = 24 * time.Hour

// agree finds out for how long this turn keeps, and so what is older. What was emptied is gone
// for good, and a setting is easily mistyped: so an instance that is to keep for shorter than was kept so
// far goes on as before, until somebody confirms by hand that it is meant. Nothing can be forgotten where
// that is not known.
func (t *turn) agree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	latest, some, err := t.parts.Place.Latest(ctx)
	if err != nil {
		return err
	}
	if err := t.settle(&latest, some); err != nil {
		return err
	}
	t.cutoff = t.now.Add(-t.report.Retention)
	t.hold = hold{reader: t.parts.Reader, cutoff: t.cutoff}
	return nil
}

// settle decides by the report of the latest turn. The floor is the shortest keeping that
// needs no confirmation: what was kept last, and was not kept for longer ever since, for a day.
func (t *turn) settle(latest *domain.RetentionReport, some bool) error {
	own, r := t.cfg.Retention, &t.report
	r.Retention, r.Floor, r.FloorAt = own, latest.Floor, latest.FloorAt
	if r.Floor == 0 { // of a version that did not know of it
		r.Floor, r.FloorAt = latest.Retention, latest.FinishedAt
	}
	accept := func() { r.Floor, r.FloorAt = own, t.now.UTC() }
	switch {
	case !some, own == r.Floor, t.shorten && own < r.Floor:
		accept()
	case own > r.Floor:
		// By hand it is for this once only: the services' setting is another.
		if t.leads && t.now.Sub(r.FloorAt) > floorFor {
			accept()
		}
	case t.leads:
		r.Retention, r.Wanted = r.Floor, own
	case !t.dry:
		return fmt.Errorf("%s is %w: %s", own, ErrShorter, r.Floor)
	}
	return nil
}
