package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestASeriesHasAPointForEachStepInWhichSomethingWasCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stats = []domain.Stats{{
		at(0, 0): counters(1, 1), at(1, 0): counters(2, 2), at(0, 2*time.Minute): counters(4, 3),
		at(0, 50*time.Hour): counters(8, 8), at(0, 90*24*time.Hour): counters(16, 16),
	}}
	for target, test := range map[string]struct {
		step, since string
		points      map[string]float64 // received, by time
	}{
		"":           {"minute", "2026-03-01T11:00:00Z", map[string]float64{"2026-03-01T11:58:00Z": 4, "2026-03-01T12:00:00Z": 3}},
		"?window=1m": {"minute", "2026-03-01T11:59:00Z", map[string]float64{"2026-03-01T12:00:00Z": 3}},
		"?window=3h": {
			"minute", "2026-03-01T09:00:00Z", map[string]float64{"2026-03-01T11:58:00Z": 4, "2026-03-01T12:00:00Z": 3},
		},
		"?window=3h1m": {"hour", "2026-03-01T08:00:00Z", map[string]float64{"2026-03-01T11:00:00Z": 4, "2026-03-01T12:00:00Z": 3}},
		"?window=7d": {"hour", "2026-02-22T12:00:00Z", map[string]float64{
			"2026-02-27T10:00:00Z": 8, "2026-03-01T11:00:00Z": 4, "2026-03-01T12:00:00Z": 3,
		}},
		"?window=7d1m":        {"day", "2026-02-22T00:00:00Z", map[string]float64{"2026-02-27T00:00:00Z": 8, "2026-03-01T00:00:00Z": 7}},
		"?window=1h&step=day": {"day", "2026-03-01T00:00:00Z", map[string]float64{"2026-03-01T00:00:00Z": 7}},
		"?window=400d": {"day", "2025-01-25T00:00:00Z", map[string]float64{
			"2025-12-01T00:00:00Z": 16, "2026-02-27T00:00:00Z": 8, "2026-03-01T00:00:00Z": 7,
		}},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			got := b.show(t, "/api/v1/dedup/series"+target)
			require.Equal(t, test.step, got["step"])
			require.Equal(t, test.since, got["since"])
			points := map[string]float64{}
			last := ""
			for _, item := range as[[]any](t, got["points"]) {
				point := as[map[string]any](t, item)
				at := as[string](t, point["at"])
				require.Greater(t, at, last, "by time")
				points[at], last = as[float64](t, point["received"]), at
			}
			require.Equal(t, test.points, points)
		})
	}
}

func TestTheWholeHistoryIsShownByTheDay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Equal(t, "day", b.show(t, "/api/v1/dedup/series?window=all")["step"])
	require.Equal(t, []any{}, b.show(t, "/api/v1/dedup/series?window=all")["points"])
}

func TestAPointHasEveryCounter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stats = []domain.Stats{{at(0, 0): {
		Received: 9, Processed: 4, Recovered: 1, Redelivered: 1, Republished: 2, Conflicting: 1, Invalid: 1, Captured: 2, Declined: 1,
		DuplicateOrder: 1, Discarded: 1, NonV7: 1, Delays: [10]int64{domain.DelayForgotten: 4}, IDAhead: 1, IDAheadMax: 2 * time.Second,
	}}}
	points := as[[]any](t, b.show(t, "/api/v1/dedup/series?window=5m")["points"])
	require.Len(t, points, 1)
	point := as[map[string]any](t, points[0])
	duplicates := as[map[string]any](t, point["duplicates"])
	require.InDelta(t, 4, duplicates["total"], 0)
	require.InDelta(t, 4, as[map[string]any](t, duplicates["delays"])["forgotten"], 0)
	require.Equal(t, map[string]any{"count": 1., "max": "2s"}, point["id_ahead"])
	for member, want := range map[string]float64{
		"received": 9, "processed": 4, "recovered": 1, "invalid": 1, "captured": 2, "declined": 1, "duplicate_order": 1, "discarded": 1, "non_v7": 1,
	} {
		require.InDelta(t, want, point[member], 0, member)
	}
	require.NotContains(t, point, "unfinished", "what is open is so now, and not over time")
}
