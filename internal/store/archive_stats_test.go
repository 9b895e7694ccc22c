package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// onPartition puts the record of an intent there.
func onPartition(p int32) func(*domain.Intent) {
	return func(in *domain.Intent) { in.Record.Partition = p }
}

func TestStatsSumTheMinutesOfTheirWindow(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	minutes := map[int]int64{0: 1, 59: 2, 60: 4, 61: 8}
	minute := time.Now().UTC().Add(-5 * time.Hour).Truncate(time.Minute)
	for m, n := range minutes {
		key := at(0, 0)
		key.Minute = minute.Add(time.Duration(m) * time.Minute)
		count(t, s, domain.Stats{key: {Received: n}})
	}
	for name, tc := range map[string]struct {
		since time.Time
		want  int64
	}{
		"everything":                     {time.Time{}, 15},
		"from the start of a minute":     {minute.Add(time.Hour), 12},
		"from within a minute, whole":    {minute.Add(time.Hour + 59*time.Second), 12},
		"from just before it":            {minute.Add(time.Hour - time.Nanosecond), 14},
		"given in another zone":          {minute.Add(time.Hour).In(time.FixedZone("UTC+5:45", 20700)), 12},
		"from after the last, and empty": {minute.Add(2 * time.Hour), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stats, err := s.DedupStats(t.Context(), group, tc.since)
			require.NoError(t, err)
			require.Equal(t, tc.want, stats.Total.Received)
		})
	}
}

func TestStatsArePerPartitionAndAddUp(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	other := at(0, 0)
	other.Group = "another-group"
	early := at(2, 0)
	early.Topic = "a.topic"
	count(t, s, domain.Stats{at(10, 0): distinct(1), at(2, 0): distinct(2), at(2, 5): distinct(4), early: distinct(8), other: distinct(64)})

	// Open intents count as they are now, in every state; unclaimed ones and those
	// of another group do not.
	states := []domain.IntentState{
		domain.Waiting, domain.Calling, domain.UnknownOutcome, domain.Answered, domain.Parked, domain.Held,
	}
	for _, state := range states {
		put(t, s, aWaiting(inState(state), onPartition(2)),
			aWaiting(inState(state), onPartition(2), func(in *domain.Intent) { in.Claimed = false }),
			aWaiting(inState(state), onPartition(2), func(in *domain.Intent) { in.Group = "another-group" }))
	}
	put(t, s, aWaiting(onPartition(11))) // of a partition that has counted nothing yet

	stats, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []domain.PartitionStats{
		{Topic: "a.topic", Partition: 2, WindowStats: domain.WindowStats{Counters: distinct(8)}},
		{Topic: "orders.confirmed", Partition: 2, WindowStats: domain.WindowStats{Counters: distinct(6), Unfinished: 4, Parked: 2}},
		{Topic: "orders.confirmed", Partition: 10, WindowStats: domain.WindowStats{Counters: distinct(1)}},
		{Topic: "orders.confirmed", Partition: 11, WindowStats: domain.WindowStats{Unfinished: 1}},
	}, stats.Partitions)
	require.Equal(t, domain.WindowStats{Counters: distinct(15), Unfinished: 5, Parked: 2}, stats.Total)

	later, err := s.DedupStats(t.Context(), group, epoch.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, domain.WindowStats{Unfinished: 5, Parked: 2}, later.Total, "what is open is so now, whatever the window")
}

func TestStatsDescribeTheDedupTable(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	empty, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	require.Equal(t, int64(-1), empty.Table.Rows, "before the first analyze nobody knows")
	require.Equal(t, 1, empty.Table.Partitions)
	require.Nil(t, empty.Table.Oldest)
	require.Nil(t, empty.Table.OldestEvent)

	claim(t, s, sightings(40))
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `UPDATE processed_event SET processed_at = $1 WHERE source_offset = 7`, epoch)
	execute(t, conn, `CREATE TABLE first_half PARTITION OF processed_event
		FOR VALUES FROM ('00000000-0000-0000-0000-000000000000') TO ('01000000-0000-0000-0000-000000000000')`)
	execute(t, conn, `ANALYZE processed_event`)
	full, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	require.Equal(t, int64(40), full.Table.Rows)
	require.Equal(t, 2, full.Table.Partitions)
	require.Equal(t, epoch, *full.Table.Oldest)
}

// The counters and the open intents are read at one instant: while events are
// claimed and finished, what was processed is final or open at every look.
func TestStatsAddUpWhileTheFlowGoesOn(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				in := aWaiting()
				if err := s.Transact(t.Context(), func(tx domain.Tx) error {
					if err := tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{in}}); err != nil {
						return err
					}
					return tx.Count(t.Context(), domain.Stats{at(3, 0): {Received: 1, Processed: 1}})
				}); err != nil {
					return err
				}
				if err := s.Transact(t.Context(), func(tx domain.Tx) error {
					if err := tx.Write(t.Context(), domain.Writes{Delete: ends(read(in))}); err != nil {
						return err
					}
					return tx.Count(t.Context(), domain.Stats{at(3, 0): {Captured: 1}})
				}); err != nil {
					return err
				}
			}
		}()
	}()
	for range 300 {
		stats, err := s.DedupStats(t.Context(), group, time.Time{})
		require.NoError(t, err)
		require.Equal(t, stats.Total.Processed, stats.Total.Captured+stats.Total.Unfinished)
	}
	close(stop)
	require.NoError(t, <-done)
	require.Positive(t, total(t, s).Captured)
}
