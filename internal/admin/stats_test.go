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
	b.archive.table = domain.ProcessedEventTable{Rows: 120, Oldest: &oldest, Partitions: 9}
	b.archive.stats = []domain.Stats{{at(1, 0): {
		Received: 1000, Processed: 800, Recovered: 1, Redelivered: 100, Republished: 90, Conflicting: 4, Invalid: 6,
		Captured: 780, Declined: 10, DuplicateOrder: 5, Discarded: 2, NonV7: 3,
	}}}
	intents := []domain.IntentState{domain.Waiting, domain.UnknownOutcome, domain.Calling, domain.Parked}
	for n, state := range intents {
		in := &domain.Intent{State: state, Claimed: true, Group: testGroup}
		in.Record.Coordinates = domain.Coordinates{Topic: "orders", Partition: 1}
		b.archive.stories[theID(n)] = domain.EventStory{EventID: theID(n), Intent: in}
	}
	want := map[string]any{
		"received": 1000., "processed": 800., "recovered": 1.,
		"duplicates": map[string]any{"total": 194., "redelivered": 100., "republished": 90., "conflicting": 4.},
		"invalid":    6., "captured": 780., "declined": 10., "duplicate_order": 5., "discarded": 2.,
		"unfinished": 3., "parked": 1., "non_v7": 3.,
	}
	partition := map[string]any{"topic": "orders", "partition": 1.}
	maps.Copy(partition, want)
	want["partitions"] = []any{partition}
	want["window"], want["since"] = "1h", "2026-03-01T11:00:00Z"
	want["processed_event"] = map[string]any{
		"rows": 120., "oldest": "2026-03-01T11:00:30Z", "partitions": 9., "retention": "168h",
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
	require.Equal(t, map[string]any{"rows": nil, "oldest": nil, "partitions": 0., "retention": "1h30m"}, got["processed_event"])
}

func TestStatisticsAreThoseOfTheGroup(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) { b.deps.Group = "another" })
	b.archive.stats = []domain.Stats{{at(0, 0): counters(1, 1)}}
	require.InDelta(t, 0, b.show(t, "/api/v1/dedup/stats")["received"], 0)
}
