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

// countersView is what was counted over a window, and what stands open now.
type countersView struct {
	flowView
	Unfinished int64 `json:"unfinished"`
	Parked     int64 `json:"parked"`
}

// flowView is what was counted over some time.
type flowView struct {
	Received       int64          `json:"received"`
	Processed      int64          `json:"processed"`
	Recovered      int64          `json:"recovered"`
	Duplicates     duplicatesView `json:"duplicates"`
	Invalid        int64          `json:"invalid"`
	Captured       int64          `json:"captured"`
	Declined       int64          `json:"declined"`
	DuplicateOrder int64          `json:"duplicate_order"`
	Discarded      int64          `json:"discarded"`
	NonV7          int64          `json:"non_v7"`
	IDAhead        aheadView      `json:"id_ahead"`
}

// aheadView tells of the processed events whose id's time was ahead of our clock.
type aheadView struct {
	Count int64  `json:"count"`
	Max   string `json:"max"` // the largest lead
}

type duplicatesView struct {
	Total       int64 `json:"total"`
	Redelivered int64 `json:"redelivered"`
	Republished int64 `json:"republished"`
	Conflicting int64 `json:"conflicting"`
	// Delays say how long after the first sighting of its event each of them came.
	Delays delaysView `json:"delays"`
}

// delaysView is a histogram: each bucket counts what lies within its bound and
// beyond that of the one before.
type delaysView struct {
	Buckets   []delayView `json:"buckets"`
	Longer    int64       `json:"longer"`
	Forgotten int64       `json:"forgotten"` // the first sighting is not known any more
}

type delayView struct {
	UpTo  string `json:"up_to"`
	Count int64  `json:"count"`
}

type partitionStatsView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	countersView
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
		// Counters are kept by the minute, and after a week by the hour: the one that the
		// window begins in counts whole.
		since = s.deps.Clock.Now().UTC().Add(-length).Truncate(time.Minute)
		if length >= minutesKept {
			since = since.Truncate(time.Hour)
		}
	}
	var turn *domain.RetentionReport
	stats, err := query(s, r, func(ctx context.Context) (domain.DedupStats, error) {
		report, found, err := s.deps.Archive.Retention(ctx)
		if err != nil {
			return domain.DedupStats{}, err
		}
		if found {
			turn = &report
		}
		return s.deps.Archive.DedupStats(ctx, s.deps.Group, since)
	})
	if err != nil {
		return nil, err
	}
	view := statsView{
		Window: name, Since: instant(since), countersView: viewWindow(&stats.Total),
		Partitions:     make([]partitionStatsView, len(stats.Partitions)),
		ProcessedEvent: viewTable(&stats.Table, s.deps.Retention, turn),
	}
	for i := range stats.Partitions {
		p := &stats.Partitions[i]
		view.Partitions[i] = partitionStatsView{p.Topic, p.Partition, viewWindow(&p.WindowStats)}
	}
	return view, nil
}

func viewWindow(w *domain.WindowStats) countersView {
	return countersView{flowView: viewFlow(&w.Counters), Unfinished: w.Unfinished, Parked: w.Parked}
}

func viewFlow(c *domain.Counters) flowView {
	return flowView{
		Received: c.Received, Processed: c.Processed, Recovered: c.Recovered,
		Duplicates: duplicatesView{
			Total: c.Duplicates(), Redelivered: c.Redelivered,
			Republished: c.Republished, Conflicting: c.Conflicting, Delays: viewDelays(c),
		},
		Invalid: c.Invalid, Captured: c.Captured, Declined: c.Declined,
		DuplicateOrder: c.DuplicateOrder, Discarded: c.Discarded, NonV7: c.NonV7,
		IDAhead: aheadView{Count: c.IDAhead, Max: duration(c.IDAheadMax)},
	}
}

func viewDelays(c *domain.Counters) delaysView {
	view := delaysView{Longer: c.Delays[domain.DelayLonger], Forgotten: c.Delays[domain.DelayForgotten]}
	for _, bucket := range domain.DelayBuckets() {
		if _, bounded := bucket.Bound(); bounded {
			view.Buckets = append(view.Buckets, delayView{UpTo: bucket.String(), Count: c.Delays[bucket]})
		}
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
