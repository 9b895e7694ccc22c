package admin_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func counters(received, processed int64) domain.Counters {
	return domain.Counters{Received: received, Processed: processed, Redelivered: received - processed, Captured: processed}
}

// at returns the key of a minute that began that long before noon.
func at(partition int32, ago time.Duration) domain.StatKey {
	return domain.StatKey{
		Group: testGroup, Topic: "orders", Partition: partition, Minute: noon.Truncate(time.Minute).Add(-ago),
	}
}

func TestStatisticsHaveTheFormThatOthersReadAndAddUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	oldest := noon.Add(-time.Hour).In(time.FixedZone("somewhere", 7200))
	event := oldest.Add(-1500 * time.Millisecond)
	b.archive.table = domain.ProcessedEventTable{
		Rows: 120, Oldest: &oldest, Partitions: 9, TableBytes: 8192, IndexBytes: 16384, OldestEvent: &event,
		Default: domain.DefaultPartition{Rows: -1, Bytes: 32768},
	}
	b.archive.stats = []domain.Stats{{at(1, 0): {
		Received: 1000, Processed: 800, Recovered: 1, Redelivered: 100, Republished: 90, Conflicting: 4, Invalid: 6,
		Captured: 780, Declined: 10, DuplicateOrder: 5, Discarded: 2, NonV7: 3,
		Delays: [10]int64{101, 50, 20, 10, 5, 3, 2, 1, 1, 1}, IDAhead: 7, IDAheadMax: 90*time.Second + 500*time.Millisecond,
	}}}
	intents := []domain.IntentState{domain.Waiting, domain.UnknownOutcome, domain.Calling, domain.Parked}
	for n, state := range intents {
		in := &domain.Intent{State: state, Claimed: true, Group: testGroup}
		in.Record.Coordinates = domain.Coordinates{Topic: "orders", Partition: 1}
		b.archive.stories[theID(n)] = domain.EventStory{EventID: theID(n), Intent: in}
	}
	want := map[string]any{
		"received": 1000., "processed": 800., "recovered": 1.,
		"duplicates": map[string]any{
			"total": 194., "redelivered": 100., "republished": 90., "conflicting": 4.,
			"delays": map[string]any{"longer": 1., "forgotten": 1., "buckets": []any{
				map[string]any{"up_to": "1m", "count": 101.},
				map[string]any{"up_to": "10m", "count": 50.},
				map[string]any{"up_to": "1h", "count": 20.},
				map[string]any{"up_to": "6h", "count": 10.},
				map[string]any{"up_to": "1d", "count": 5.},
				map[string]any{"up_to": "3d", "count": 3.},
				map[string]any{"up_to": "7d", "count": 2.},
				map[string]any{"up_to": "30d", "count": 1.},
			}},
		},
		"invalid": 6., "captured": 780., "declined": 10., "duplicate_order": 5., "discarded": 2.,
		"unfinished": 3., "parked": 1., "non_v7": 3., "id_ahead": map[string]any{"count": 7., "max": "1m30.5s"},
	}
	partition := map[string]any{"topic": "orders", "partition": 1.}
	maps.Copy(partition, want)
	want["partitions"] = []any{partition}
	want["window"], want["since"] = "1h", "2026-03-01T11:00:00Z"
	want["processed_event"] = map[string]any{
		"rows": 120., "oldest": "2026-03-01T11:00:30Z", "oldest_event": "2026-03-01T11:00:28.5Z",
		"partitions": 9., "retention": "168h", "table_bytes": 8192., "index_bytes": 16384.,
		"default_partition": map[string]any{"rows": nil, "bytes": 32768., "blocked_by": nil},
		"mode":              nil, "range_width": nil, "ranges": []any{}, "next_drop": nil, "last_turn": nil,
	}
	require.Equal(t, want, b.show(t, "/api/v1/dedup/stats"))
}

func TestAWindowCountsFromItsFirstMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stats = []domain.Stats{{
		at(0, 0): counters(1, 1), at(0, time.Minute): counters(2, 2), at(1, time.Hour): counters(4, 4),
		at(0, 24*time.Hour): counters(8, 8), at(0, 500*24*time.Hour): counters(16, 16),
	}}
	for window, test := range map[string]struct {
		received   float64
		partitions int
		since      any
	}{
		"1m":      {3, 1, "2026-03-01T11:59:00Z"},
		"0d0h1m":  {3, 1, "2026-03-01T11:59:00Z"},
		"59m":     {3, 1, "2026-03-01T11:01:00Z"},
		"1h":      {7, 2, "2026-03-01T11:00:00Z"},
		"60m":     {7, 2, "2026-03-01T11:00:00Z"},
		"1h30m":   {7, 2, "2026-03-01T10:30:00Z"},
		"23h59m":  {7, 2, "2026-02-28T12:01:00Z"},
		"24h":     {15, 2, "2026-02-28T12:00:00Z"},
		"7d":      {15, 2, "2026-02-22T12:00:00Z"},
		"1d12h5m": {15, 2, "2026-02-27T23:55:00Z"},
		"6d30m":   {15, 2, "2026-02-23T11:30:00Z"},
		"7d30m":   {15, 2, "2026-02-22T11:00:00Z"}, // by the hour
		"400d":    {15, 2, "2025-01-25T12:00:00Z"},
		"all":     {31, 2, nil},
	} {
		t.Run(window, func(t *testing.T) {
			t.Parallel()
			got := b.show(t, "/api/v1/dedup/stats?window="+window)
			require.Equal(t, window, got["window"])
			require.Equal(t, test.since, got["since"])
			require.InDelta(t, test.received, got["received"], 0)
			require.Len(t, got["partitions"], test.partitions)
		})
	}
}

func TestWhatIsOpenIsShownWhateverTheWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stories = map[uuid.UUID]domain.EventStory{
		theID(1): {Intent: &domain.Intent{State: domain.Held, Claimed: true, Group: testGroup, CreatedAt: noon.AddDate(-3, 0, 0)}},
	}
	require.InDelta(t, 1, b.show(t, "/api/v1/dedup/stats?window=1m")["parked"], 0)
}

func TestAnEmptyStoreHasStatisticsToo(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.deps.Retention = 90 * time.Minute
		b.archive.table.Rows = -1 // never analyzed
	})
	got := b.show(t, "/api/v1/dedup/stats?window=all")
	require.Equal(t, []any{}, got["partitions"])
	table := as[map[string]any](t, got["processed_event"])
	for _, member := range []string{"rows", "oldest", "oldest_event", "mode", "next_drop", "last_turn"} {
		require.Contains(t, table, member)
		require.Nil(t, table[member], member)
	}
	require.InDelta(t, 0, table["partitions"], 0)
	require.Equal(t, "1h30m", table["retention"])
}

// turn is a report of retention whose ranges are of the days from the first of
// February on.
func turn(ranges ...domain.RetentionRange) *domain.RetentionReport {
	for i := range ranges {
		ranges[i].From = time.Date(2026, 2, 1+i, 0, 0, 0, 0, time.UTC)
		ranges[i].To = ranges[i].From.AddDate(0, 0, 1)
	}
	r := &domain.RetentionReport{
		FinishedAt: noon.Add(-30 * time.Second), Instance: "billing-1", Retention: 168 * time.Hour, Mode: domain.RetainByPartition, Width: "day", Ranges: ranges,
	}
	if len(ranges) > 0 {
		r.Next = &domain.RetentionNext{Span: ranges[0].Span, At: ranges[0].To.Add(168 * time.Hour)}
	}
	return r
}

func TestWhatRetentionDidIsShownWithTheTable(t *testing.T) {
	t.Parallel()
	const unread = "the group billing has 7 unread records of orders/0"
	for name, test := range map[string]struct {
		turn *domain.RetentionReport
		want map[string]any
	}{
		"ranges, and what blocks the next of them": {
			turn(
				domain.RetentionRange{State: domain.RangeBlocked, Why: unread, Rows: 10, Bytes: 8192},
				domain.RetentionRange{State: domain.RangeCurrent, Rows: -1}),
			map[string]any{
				"mode": "partition", "range_width": "day",
				"ranges": []any{
					map[string]any{
						"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z", "rows": 10., "bytes": 8192., "state": "blocked", "why": unread,
					},
					map[string]any{
						"from": "2026-02-02T00:00:00Z", "to": "2026-02-03T00:00:00Z", "rows": nil, "bytes": 0., "state": "current", "why": nil,
					},
				},
				"next_drop": map[string]any{
					"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z", "at": "2026-02-09T00:00:00Z", "blocked_by": unread,
				},
				"last_turn": map[string]any{"at": "2026-03-01T12:00:00Z", "instance": "billing-1", "kept_for": "168h", "wanted": nil, "error": nil},
			},
		},
		"another range is blocked, not the next": {
			turn(domain.RetentionRange{State: domain.RangeKept}, domain.RetentionRange{State: domain.RangeBlocked, Why: unread}),
			map[string]any{"next_drop": map[string]any{
				"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z", "at": "2026-02-09T00:00:00Z", "blocked_by": nil,
			}},
		},
		"no ranges, and a turn that failed": {
			func() *domain.RetentionReport {
				r := turn()
				r.Mode, r.Error = domain.RetainByDelete, "lock timeout"
				r.Default = domain.RetentionRest{Blocked: true, Why: unread, Rows: 5, Bytes: 7} // its figures are a turn old
				return r
			}(),
			map[string]any{
				"mode": "delete", "ranges": []any{}, "next_drop": nil,
				"default_partition": map[string]any{"rows": 0., "bytes": 0., "blocked_by": unread},
				"last_turn":         map[string]any{"at": "2026-03-01T12:00:00Z", "instance": "billing-1", "kept_for": "168h", "wanted": nil, "error": "lock timeout"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.archive.turn = test.turn
			table := as[map[string]any](t, b.show(t, "/api/v1/dedup/stats")["processed_event"])
			for member, want := range test.want {
				require.Equal(t, want, table[member], member)
			}
		})
	}
}

func TestStatisticsAreThoseOfTheGroup(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) { b.deps.Group = "another" })
	b.archive.stats = []domain.Stats{{at(0, 0): counters(1, 1)}}
	require.InDelta(t, 0, b.show(t, "/api/v1/dedup/stats")["received"], 0)
}
