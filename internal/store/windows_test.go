package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// fillSums makes sums of days of 24 busy partitions, as if they had been rolled up.
func fillSums(t testing.TB, conn *pgx.Conn, days int) {
	t.Helper()
	for span, reach := range map[string]int{"minute": min(days, 7), "hour": days, "day": days, "ever": 0} {
		execute(t, conn, `
			INSERT INTO dedup_stat_rollup (span, consumer_group, at, topic, partition, received, processed, recovered, redelivered,
				republished, conflicting, invalid, captured, declined, duplicate_order, discarded, non_v7)
			SELECT $1, $2, at, 'orders.confirmed', p, 10, 9, 0, 1, 0, 0, 0, 8, 1, 0, 0, 0
			FROM generate_series(CASE $1 WHEN 'ever' THEN to_timestamp(0) ELSE date_trunc('day', now(), 'UTC') - make_interval(days => $3) END,
				CASE $1 WHEN 'ever' THEN to_timestamp(0) ELSE date_trunc('day', now(), 'UTC') END,
				CASE $1 WHEN 'minute' THEN interval '1 minute' WHEN 'hour' THEN interval '1 hour' ELSE interval '1 day' END) AS at,
				generate_series(0, 23) AS p`, span, group, reach)
	}
	execute(t, conn, `
		INSERT INTO dedup_stat SELECT $1, 'orders.confirmed', p, at, 10, 9, 0, 1, 0, 0, 0, 8, 1, 0, 0, 0
		FROM generate_series(date_trunc('minute', now()) - interval '2 hours', now(), interval '1 minute') AS at, generate_series(0, 23) AS p`, group)
	execute(t, conn, `VACUUM ANALYZE dedup_stat_rollup, dedup_stat`)
}

func TestNoQuestionReadsTheSumsFromEndToEnd(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	fillSums(t, conn, 60)
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	for _, window := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour} {
		_, err := s.DedupStats(t.Context(), group, time.Now().Add(-window))
		require.NoError(t, err)
		_, err = s.DedupSeries(t.Context(), group, time.Now().Add(-window), domain.StepHour)
		require.NoError(t, err)
	}
	require.Positive(t, total(t, s).Received)
	chore(t, s, "statistics", time.Now())
	require.NoError(t, s.Close()) // a session tells what it has counted when it ends
	await(t, conn, 0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	await(t, conn, 1, `SELECT count(*) FROM pg_stat_user_tables WHERE relname = 'dedup_stat_rollup' AND idx_scan > 10`)
	require.Zero(t, value[int](t, conn, `SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'dedup_stat_rollup'`))
}

// What the page costs with 24 partitions and 400 days of history.
func BenchmarkDedupStats(b *testing.B) {
	s, databaseURL := storetest.Open(b)
	fillSums(b, storetest.Conn(b, databaseURL), 400)
	for name, window := range map[string]time.Duration{
		"hour": time.Hour, "week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour, "all": 0,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var since time.Time
				if window > 0 {
					since = time.Now().Add(-window)
				}
				_, err := s.DedupStats(b.Context(), group, since)
				require.NoError(b, err)
			}
		})
	}
}
