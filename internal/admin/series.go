package admin

import (
	"context"
	"net/http"
	"time"

	"example.com/billing/internal/domain"
)

// The longest windows that are shown by the minute and by the hour where nobody says
// how: what still makes a curve that can be read.
const (
	fineWindow   = 3 * time.Hour
	coarseWindow = 7 * day
)

// seriesView is the answer of /api/v1/dedup/series.
type seriesView struct {
	Window string            `json:"window"`
	Step   domain.SeriesStep `json:"step"`
	// Since is where the series begins: later than the window where that would be too
	// many points.
	Since  time.Time   `json:"since"`
	Points []pointView `json:"points"` // by time; where nothing was counted there is none
}

// pointView is what was counted within a step, over all partitions.
type pointView struct {
	At time.Time `json:"at"` // where the step begins
	flowView
}

// series shows the counters over time.
func (s *Server) series(r *http.Request) (any, error) {
	params, err := parseParams(r, paramWindow, paramStep)
	if err != nil {
		return nil, err
	}
	name, length, err := params.window()
	if err != nil {
		return nil, err
	}
	step, err := oneOf(params, paramStep, seriesSteps())
	if err != nil {
		return nil, err
	}
	if step == "" {
		step = stepOf(length)
	}
	var since time.Time
	if length > 0 {
		since = s.deps.Clock.Now().UTC().Add(-length)
	}
	series, err := query(s, r, func(ctx context.Context) (domain.DedupSeries, error) {
		return s.deps.Archive.DedupSeries(ctx, s.deps.Group, since, step)
	})
	if err != nil {
		return nil, err
	}
	view := seriesView{Window: name, Step: series.Step, Since: series.Since.UTC(), Points: make([]pointView, len(series.Points))}
	for i := range series.Points {
		p := &series.Points[i]
		view.Points[i] = pointView{p.At.UTC(), viewFlow(&p.Counters)}
	}
	return view, nil
}

func seriesSteps() []domain.SeriesStep {
	return []domain.SeriesStep{domain.StepMinute, domain.StepHour, domain.StepDay}
}

// stepOf chooses the step of a window; 0 is the whole history.
func stepOf(window time.Duration) domain.SeriesStep {
	switch {
	case window == 0 || window > coarseWindow:
		return domain.StepDay
	case window > fineWindow:
		return domain.StepHour
	}
	return domain.StepMinute
}
