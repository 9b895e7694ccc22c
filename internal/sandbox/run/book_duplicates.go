package run

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// delays are the names of the buckets, in the order of their bounds.
func delays() []string {
	return []string{"1m", "10m", "1h", "6h", "1d", "3d", "7d", "30d", "longer", "forgotten"}
}

// readDelays sums how late the duplicates came, over the whole history.
func readDelays(ctx context.Context, q querier, group string) (map[string]int64, error) {
	sums := make(map[string]int64)
	for _, name := range delays() {
		var n int64
		column := pgx.Identifier{"delay_" + name}.Sanitize()
		err := q.QueryRow(ctx, `SELECT coalesce(sum(n), 0)::bigint FROM (
			SELECT `+column+` FROM dedup_stat WHERE consumer_group = $1
			UNION ALL SELECT `+column+` FROM dedup_stat_rollup WHERE consumer_group = $1 AND span = 'ever') AS history (n)`, group).Scan(&n)
		if err != nil {
			return nil, fmt.Errorf("sum dedup_stat: %w", err)
		}
		sums[name] = n
	}
	return sums, nil
}

// readLog reads the log of duplicates.
func readLog(ctx context.Context, q querier, group string) ([]Logged, error) {
	rows, err := q.Query(ctx, `SELECT event_id, kind, format('%s/%s@%s', topic, partition, "offset"),
		coalesce(format('%s/%s@%s', first_topic, first_partition, first_offset), '') FROM duplicate_log WHERE consumer_group = $1`, group)
	if err != nil {
		return nil, fmt.Errorf("read duplicate_log: %w", err)
	}
	log, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Logged])
	if err != nil {
		return nil, fmt.Errorf("read duplicate_log: %w", err)
	}
	return log, nil
}
