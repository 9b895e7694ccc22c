package store_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// firstDay is the day of the first of the ranges of these tests.
var firstDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// day returns the instant that many hours into a day.
func day(n, hours int) time.Time {
	return firstDay.AddDate(0, 0, n).Add(time.Duration(hours) * time.Hour)
}

// v7At returns an id of version 7 of an instant; floorAt the first id of all of it.
func v7At(at time.Time) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	floor := floorAt(at)
	copy(id[:6], floor[:6])
	return id
}

func floorAt(at time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	return id
}

// days makes ranges of a day each, from the first day on.
func days(t testing.TB, conn *pgx.Conn, count int) {
	t.Helper()
	for n := range count {
		execute(t, conn, fmt.Sprintf(`CREATE TABLE day_%d PARTITION OF processed_event FOR VALUES FROM ('%s') TO ('%s')`,
			n, floorAt(day(n, 0)), floorAt(day(n+1, 0))))
	}
}

// processed is a row of processed_event.
type processed struct {
	id uuid.UUID
	at time.Time
}

func fill(t testing.TB, conn *pgx.Conn, rows ...processed) {
	t.Helper()
	for _, r := range rows {
		execute(t, conn, `INSERT INTO processed_event VALUES ($1, $2, $3, 't', 0, 0, decode(repeat('00', 32), 'hex'))`, r.id, group, r.at)
	}
}

func tableOf(t testing.TB, s *store.Store) domain.ProcessedEventTable {
	t.Helper()
	stats, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	return stats.Table
}

func TestTheOldestRowAndEventAreFoundWhereverTheyAre(t *testing.T) {
	t.Parallel()
	v4 := func() uuid.UUID { return uuid.MustParse("0000aaaa-0000-4000-8000-" + uuid.NewString()[24:]) }
	inFirst := floorAt(day(0, 0)) // lies in the first range, and is of version 4
	inFirst[6], inFirst[15] = 0x40, 1
	for name, tc := range map[string]struct {
		rows        []processed
		empty       string // this range is emptied
		oldest      time.Time
		oldestEvent time.Time
	}{
		"in the first range": {
			[]processed{{v7At(day(0, 1)), day(0, 2)}, {v7At(day(0, 3)), day(0, 4)}, {v7At(day(2, 1)), day(2, 1)}},
			"",
			day(0, 2), day(0, 1),
		},
		"a range later, since the first was processed late": {
			[]processed{{v7At(day(0, 1)), day(4, 0)}, {v7At(day(1, 5)), day(2, 0)}, {v7At(day(2, 1)), day(2, 1)}},
			"",
			day(2, 0), day(0, 1),
		},
		"in the default partition, by its time only": {
			[]processed{{v4(), day(0, 0)}, {v7At(day(1, 1)), day(1, 2)}},
			"",
			day(0, 0), day(1, 1),
		},
		"behind a range that was emptied": {
			[]processed{{v7At(day(0, 1)), day(0, 2)}, {v7At(day(1, 1)), day(1, 2)}},
			"day_0",
			day(1, 2), day(1, 1),
		},
		"without ranges that have rows, among ids of other versions": {
			[]processed{{v4(), day(6, 0)}, {v7At(day(40, 0)), day(5, 0)}, {v7At(day(30, 0)), day(6, 0)}, {uuid.MustParse("ffffffff-0000-4000-8000-000000000000"), day(7, 0)}},
			"",
			day(5, 0), day(30, 0),
		},
		"behind an id of another version in its range": {
			[]processed{{inFirst, day(0, 9)}, {v7At(day(0, 5)), day(0, 8)}},
			"",
			day(0, 8), day(0, 5),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, databaseURL := storetest.Open(t)
			conn := storetest.Conn(t, databaseURL)
			days(t, conn, 4)
			fill(t, conn, tc.rows...)
			if tc.empty != "" {
				execute(t, conn, `TRUNCATE `+tc.empty)
			}
			table := tableOf(t, s)
			require.Equal(t, 5, table.Partitions)
			require.Equal(t, tc.oldest, table.Oldest.UTC())
			require.Equal(t, tc.oldestEvent, *table.OldestEvent)
		})
	}
}

func TestOnlyOtherVersionsHaveNoOldestEvent(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	fill(t, storetest.Conn(t, databaseURL), processed{uuid.MustParse("9b2c1b0e-0000-4000-8000-000000000000"), day(1, 0)})
	table := tableOf(t, s)
	require.Nil(t, table.OldestEvent)
	require.Equal(t, day(1, 0), table.Oldest.UTC())
}

func TestTheSizesAreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	days(t, conn, 2)
	fill(t, conn, processed{v7At(day(0, 1)), day(0, 1)}, processed{v7At(day(1, 1)), day(1, 1)}, processed{uuid.New(), day(1, 1)})
	table := tableOf(t, s)
	require.Equal(t, int64(-1), table.Rows)
	require.Equal(t, int64(-1), table.Default.Rows, "nobody has counted yet")
	execute(t, conn, `ANALYZE processed_event`)

	table = tableOf(t, s)
	require.Equal(t, int64(3), table.Rows)
	require.Equal(t, int64(1), table.Default.Rows)
	sizes := func(kind string) int64 {
		return value[int64](t, conn, `SELECT sum(pg_relation_size(oid)) FROM pg_class
			WHERE relkind = $1 AND (relname LIKE 'day\_%' OR relname LIKE 'processed\_event\_default%')`, kind)
	}
	require.Equal(t, sizes("r"), table.TableBytes)
	require.Equal(t, sizes("i"), table.IndexBytes)
	require.Equal(t, value[int64](t, conn, `SELECT pg_relation_size('processed_event_default') + sum(pg_relation_size(indexrelid))
		FROM pg_index WHERE indrelid = 'processed_event_default'::regclass`), table.Default.Bytes)
}

// Statistics are asked for all the time, and a range can be emptied only while nobody
// holds a lock on it: of many ranges few are touched, and none is kept.
func TestStatisticsAndStoriesTouchFewRanges(t *testing.T) {
	t.Parallel()
	const ranges = 30
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	days(t, conn, ranges)
	var rows []processed
	for n := range ranges {
		rows = append(rows, processed{v7At(day(n, 1)), day(n, 2)})
	}
	fill(t, conn, rows...)
	execute(t, conn, `ANALYZE processed_event`)
	execute(t, conn, `SELECT pg_stat_reset()`)
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	for n := range 8 { // five plans are made for their values, the next one may be kept
		require.Equal(t, day(0, 2), tableOf(t, s).Oldest.UTC())
		_, known := story(t, s, rows[20+n].id)
		require.True(t, known)
	}
	require.NoError(t, s.Close()) // a session tells what it has counted when it ends
	await(t, conn, 0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)

	const touched = `SELECT count(*) FROM pg_stat_user_tables WHERE relname LIKE 'day\_%' AND seq_scan + idx_scan > 0`
	await(t, conn, 1+8, touched)
	seen := value[[]string](t, conn, `SELECT array_agg(relname::text) FROM pg_stat_user_tables
		WHERE relname LIKE 'day\_%' AND seq_scan + idx_scan > 0`)
	require.True(t, slices.Contains(seen, "day_0"))
}

// The plan of a statement that is kept for any event would lock every range.
func TestAStoryWaitsForNoRangeButItsOwn(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	days(t, conn, 3)
	mine := processed{v7At(day(1, 1)), day(1, 2)}
	fill(t, conn, mine)
	execute(t, conn, `BEGIN`)
	execute(t, conn, `LOCK TABLE day_0, day_2, processed_event_default IN ACCESS EXCLUSIVE MODE`)
	for range 20 { // those of ArchiveConns sessions, more than five times each
		got, known := story(t, s, mine.id)
		require.True(t, known)
		require.NotNil(t, got.Sighting)
	}
	execute(t, conn, `ROLLBACK`)
}

// A range that is being emptied is waited for, and one that was dropped since it was
// listed is passed over.
func TestARangeThatIsGoneMeanwhileIsPassedOver(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	days(t, conn, 3)
	fill(t, conn, processed{v7At(day(0, 1)), day(0, 2)}, processed{v7At(day(1, 1)), day(1, 2)})
	table, err := s.DescribeAfter(t.Context(), func() { execute(t, conn, `DROP TABLE day_0`) })
	require.NoError(t, err)
	require.Equal(t, day(1, 2), table.Oldest.UTC())
	require.Equal(t, day(1, 1), *table.OldestEvent)
}

// A service whose role owns nothing may use processed_event, but none of the ranges that
// their owner attaches: the page is there all the same.
func TestALeafThatMayNotBeReadIsPassedOver(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	days(t, conn, 2)
	fill(t, conn, processed{v7At(day(0, 1)), day(0, 2)}, processed{v7At(day(1, 1)), day(1, 2)})
	clerk := asRole(t, databaseURL, conn, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]q; REVOKE ALL ON day_0 FROM %[1]q`)
	s, err := store.New(storetest.Config(clerk))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	table := tableOf(t, s)
	require.Equal(t, day(1, 2), table.Oldest.UTC())
	require.Equal(t, day(1, 1), *table.OldestEvent)
}

// BenchmarkDescribeTable measures what the statistics ask of the catalog.
func BenchmarkDescribeTable(b *testing.B) {
	s, databaseURL := storetest.Open(b)
	conn := storetest.Conn(b, databaseURL)
	days(b, conn, 400)
	fill(b, conn, processed{v7At(day(10, 1)), day(10, 2)})
	for b.Loop() {
		tableOf(b, s)
	}
}
