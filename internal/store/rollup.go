package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How long the counters are kept, by what they are summed up to. The sums over all
// time are kept for ever.
const (
	// liveFor is how long a minute stays in dedup_stat: far longer than any
	// transaction that counts in it is open. A later one makes a new row, no matter.
	liveFor = 2 * time.Hour
	// minutesFor is a week, and an hour for clocks that differ and for questions that
	// begin within a minute.
	minutesFor = week + time.Hour
	// hoursFor and daysFor are 400 days, and one more for questions that begin within one.
	hoursFor = 401 * 24 * time.Hour
	daysFor  = 401 * 24 * time.Hour
)

// Spans of the sums in dedup_stat_rollup that are forgotten; those for 'ever' are not.
const (
	spanMinute = "minute"
	spanHour   = "hour"
	spanDay    = "day"
)

const (
	// rollRows bounds the minutes that one statement sums up; each adds to four rows.
	rollRows = 2000
	// pruneRows bounds the rows that one statement removes.
	pruneRows = 5000
)

// rollUp moves the minutes of dedup_stat that are over into the sums, and forgets
// sums that are too old. It returns how many rows went. No sum over all time changes
// by it, and none over a window that is kept: each minute goes and is added in one
// statement, and what is counted in it later is a row of its own, rolled up as well.
func rollUp(ctx context.Context, db session, now time.Time) (int64, error) {
	now = now.UTC().Truncate(time.Minute)
	rolled, err := inSlices(ctx, rollRows, func(ctx context.Context) (int64, error) {
		return affected(ctx, db, rollUpStatement(), now.Add(-liveFor), rollRows)
	})
	if err != nil {
		return rolled, fmt.Errorf("roll dedup_stat up: %w", err)
	}
	for _, old := range []struct {
		span   string
		before time.Time
	}{{spanMinute, now.Add(-minutesFor)}, {spanHour, now.Add(-hoursFor)}, {spanDay, now.Add(-daysFor)}} {
		pruned, err := inSlices(ctx, pruneRows, func(ctx context.Context) (int64, error) {
			return affected(ctx, db, pruneSums, old.span, old.before, pruneRows)
		})
		rolled += pruned
		if err != nil {
			return rolled, fmt.Errorf("forget sums by the %s: %w", old.span, err)
		}
	}
	return rolled, nil
}

// rollUpFormat takes minutes that nobody is counting in at the moment. Who begins to
// meanwhile waits, and makes a new row. The sums are locked in the order of their keys.
const rollUpFormat = `
WITH old AS MATERIALIZED (
	SELECT consumer_group, topic, partition, minute FROM dedup_stat WHERE minute < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM dedup_stat AS d USING old
	WHERE d.consumer_group = old.consumer_group AND d.topic = old.topic AND d.partition = old.partition AND d.minute = old.minute
	RETURNING d.*
), added AS (
	INSERT INTO dedup_stat_rollup AS r (span, consumer_group, at, topic, partition, %[1]s)
	SELECT s.span, g.consumer_group, s.at, g.topic, g.partition, %[2]s
	FROM gone AS g CROSS JOIN LATERAL (VALUES
		('minute', g.minute), ('hour', date_trunc('hour', g.minute, 'UTC')),
		('day', date_trunc('day', g.minute, 'UTC')), ('ever', to_timestamp(0))
	) AS s (span, at)
	GROUP BY s.span, g.consumer_group, s.at, g.topic, g.partition
	ORDER BY s.span, g.consumer_group, s.at, g.topic, g.partition
	ON CONFLICT (span, consumer_group, at, topic, partition) DO UPDATE SET %[3]s
)
SELECT count(*) FROM gone`

func rollUpStatement() string {
	var sums, changes []string
	for _, c := range sumColumns() {
		sums = append(sums, fmt.Sprintf("sum(g.%s)::bigint", c))
		changes = append(changes, fmt.Sprintf("%[1]s = r.%[1]s + excluded.%[1]s", c))
	}
	for _, c := range peakColumns() {
		sums = append(sums, fmt.Sprintf("max(g.%s)", c))
		changes = append(changes, fmt.Sprintf("%[1]s = greatest(r.%[1]s, excluded.%[1]s)", c))
	}
	columns := slices.Concat(sumColumns(), peakColumns())
	return fmt.Sprintf(rollUpFormat, strings.Join(columns, ", "), strings.Join(sums, ", "), strings.Join(changes, ", "))
}

// sumColumns are all counters that add up.
func sumColumns() []string { return slices.Concat(outcomeColumns(), detailColumns()) }

// Each group has a row per key for ever, which tells the groups.
const pruneSums = `
WITH old AS MATERIALIZED (
	SELECT o.* FROM (SELECT DISTINCT consumer_group FROM dedup_stat_rollup WHERE span = 'ever') AS g
	CROSS JOIN LATERAL (
		SELECT span, consumer_group, at, topic, partition FROM dedup_stat_rollup
		WHERE span = $1 AND consumer_group = g.consumer_group AND at < $2 ORDER BY at LIMIT $3
	) AS o LIMIT $3
), gone AS (
	DELETE FROM dedup_stat_rollup AS r USING old
	WHERE r.span = old.span AND r.consumer_group = old.consumer_group AND r.at = old.at AND r.topic = old.topic AND r.partition = old.partition
	RETURNING 1
)
SELECT count(*) FROM gone`

// rollUpColumns names what the sums need of the schema.
func rollUpColumns() string {
	columns := slices.Concat(sumColumns(), peakColumns())
	return "SELECT span, consumer_group, at, topic, partition, " + strings.Join(columns, ", ") + " FROM dedup_stat_rollup LIMIT 0"
}
