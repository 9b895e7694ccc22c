package admin

import (
	"time"

	"example.com/billing/internal/domain"
)

// RetentionTurn is one turn of retention as `billing retention run --json` prints it: what
// the statistics show of the latest turn, by the same names and in the same units, and what
// it did besides.
type RetentionTurn struct {
	turnView
	StartedAt    time.Time     `json:"started_at"`
	DryRun       bool          `json:"dry_run"` // nothing was changed: what follows is what a turn would do
	Retention    string        `json:"retention"`
	Mode         *string       `json:"mode"`
	Width        *string       `json:"range_width"`
	Ranges       []rangeView   `json:"ranges"`
	Default      defaultView   `json:"default_partition"`
	NextDrop     *nextDropView `json:"next_drop"`
	BlockedSince *time.Time    `json:"blocked_since"` // since when the oldest blocked rows have been due
	Attached     int           `json:"attached"`      // ranges
	Emptied      int           `json:"emptied"`       // likewise
	Dropped      int           `json:"dropped"`       // likewise
	Moved        int64         `json:"moved"`         // rows, out of the default partition into ranges
	Removed      int64         `json:"removed"`       // rows of emptied ranges, by estimate
	Deleted      int64         `json:"deleted"`       // rows, one by one
	Chores       []choreView   `json:"chores"`
}

type choreView struct {
	Name    string  `json:"name"`
	Removed int64   `json:"removed"`
	Took    string  `json:"took"`
	Error   *string `json:"error"`
}

// ViewRetention returns a report as it is shown.
func ViewRetention(r *domain.RetentionReport) RetentionTurn {
	view := RetentionTurn{
		turnView: viewTurn(r), StartedAt: r.StartedAt.UTC(), DryRun: r.DryRun, Retention: duration(r.Retention),
		Mode: optional(string(r.Mode)), Width: optional(r.Width), Ranges: viewRanges(r),
		Default:  defaultView{Rows: estimate(r.Default.Rows), Bytes: r.Default.Bytes, BlockedBy: blockedBy(&r.Default)},
		NextDrop: viewNext(r), BlockedSince: instant(r.BlockedSince),
		Attached: r.Attached, Emptied: r.Emptied, Dropped: r.Dropped, Moved: r.Moved, Removed: r.Removed, Deleted: r.Deleted,
		Chores: make([]choreView, len(r.Chores)),
	}
	for i := range r.Chores {
		c := &r.Chores[i]
		view.Chores[i] = choreView{Name: c.Name, Removed: c.Removed, Took: duration(c.Took), Error: optional(c.Error)}
	}
	return view
}

func viewTurn(r *domain.RetentionReport) turnView {
	view := turnView{At: r.FinishedAt.UTC(), Instance: r.Instance, KeptFor: duration(r.Retention), Error: optional(r.Error)}
	if r.Wanted != 0 {
		view.Wanted = new(duration(r.Wanted))
	}
	return view
}

func viewRanges(r *domain.RetentionReport) []rangeView {
	views := make([]rangeView, len(r.Ranges))
	for i := range r.Ranges {
		g := &r.Ranges[i]
		views[i] = rangeView{
			From: g.From.UTC(), To: g.To.UTC(), Rows: estimate(g.Rows), Bytes: g.Bytes, State: g.State, Why: optional(g.Why),
		}
	}
	return views
}

// viewNext tells what is forgotten next, and what keeps it where it is due already.
func viewNext(r *domain.RetentionReport) *nextDropView {
	if r.Next == nil {
		return nil
	}
	view := &nextDropView{From: r.Next.From.UTC(), To: r.Next.To.UTC(), At: r.Next.At.UTC()}
	for i := range r.Ranges {
		if g := &r.Ranges[i]; g.State == domain.RangeBlocked && g.From.Equal(view.From) {
			view.BlockedBy = optional(g.Why)
		}
	}
	return view
}

func blockedBy(rest *domain.RetentionRest) *string {
	if !rest.Blocked {
		return nil
	}
	return optional(rest.Why)
}
