package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"example.com/billing/internal/domain"
)

// statsView is the answer of /api/v1/dedup/stats.
type statsView struct {
	Window string `json:"window"`
	// Since is the beginning of the first minute that is counted; null for all.
	Since *time.Time `json:"since"`
	countersView
	Partitions     []partitionStatsView `json:"partitions"`
	ProcessedEvent tableView            `json:"processed_event"`
}

type countersView struct {
	Received       int64          `json:"received"`
	Processed      int64          `json:"processed"`
	Recovered      int64          `json:"recovered"`
	Duplicates     duplicatesView `json:"duplicates"`
	Invalid        int64          `json:"invalid"`
	Captured       int64          `json:"captured"`
	Declined       int64          `json:"declined"`
	DuplicateOrder int64          `json:"duplicate_order"`
	Discarded      int64          `json:"discarded"`
	Unfinished     int64          `json:"unfinished"`
	Parked         int64          `json:"parked"`
	NonV7          int64          `json:"non_v7"`
}

type duplicatesView struct {
	Total       int64 `json:"total"`
	Redelivered int64 `json:"redelivered"`
	Republished int64 `json:"republished"`
	Conflicting int64 `json:"conflicting"`
}

type partitionStatsView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	countersView
}

type tableView struct {
	Rows       *int64     `json:"rows"` // the planner's estimate; null before it has one
	Oldest     *time.Time `json:"oldest"`
	Partitions int        `json:"partitions"`
	Retention  string     `json:"retention"`
}

// stats shows the counters of a window and what stands open now.
func (s *Server) stats(r *http.Request) (any, error) {
	params, err := parseParams(r, paramWindow)
	if err != nil {
		return nil, err
	}
	name, length, err := params.window()
	if err != nil {
		return nil, err
	}
	var since time.Time
	if length > 0 {
		// Counters are kept by the minute: the one that the window begins in counts whole.
		since = s.deps.Clock.Now().UTC().Add(-length).Truncate(time.Minute)
	}
	stats, err := query(s, r, func(ctx context.Context) (domain.DedupStats, error) {
		return s.deps.Archive.DedupStats(ctx, s.deps.Group, since)
	})
	if err != nil {
		return nil, err
	}
	view := statsView{
		Window: name, Since: instant(since), countersView: viewCounters(&stats.Total),
		Partitions:     make([]partitionStatsView, len(stats.Partitions)),
		ProcessedEvent: viewTable(stats.Table, s.deps.Retention),
	}
	for i := range stats.Partitions {
		p := &stats.Partitions[i]
		view.Partitions[i] = partitionStatsView{p.Topic, p.Partition, viewCounters(&p.WindowStats)}
	}
	return view, nil
}

func viewCounters(w *domain.WindowStats) countersView {
	return countersView{
		Received: w.Received, Processed: w.Processed, Recovered: w.Recovered,
		Duplicates: duplicatesView{
			Total: w.Duplicates(), Redelivered: w.Redelivered,
			Republished: w.Republished, Conflicting: w.Conflicting,
		},
		Invalid: w.Invalid, Captured: w.Captured, Declined: w.Declined,
		DuplicateOrder: w.DuplicateOrder, Discarded: w.Discarded,
		Unfinished: w.Unfinished, Parked: w.Parked, NonV7: w.NonV7,
	}
}

func viewTable(table domain.ProcessedEventTable, retention time.Duration) tableView {
	view := tableView{Partitions: table.Partitions, Retention: duration(retention)}
	if table.Rows >= 0 {
		view.Rows = &table.Rows
	}
	if table.Oldest != nil {
		view.Oldest = instant(*table.Oldest)
	}
	return view
}

// instant returns a time to be shown, in UTC; nil for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// duration returns 168h for what time.Duration prints as 168h0m0s.
func duration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// optional returns nil for the zero value.
func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
