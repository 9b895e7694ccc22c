package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

const week = 7 * 24 * time.Hour

// window says which sums make up what was counted since an instant, each of them
// whole: minutes up to the next hour, hours up to the next day, and days. Minutes
// that are not rolled up yet belong to it whatever their age.
type window struct {
	since time.Time // of the minutes
	hours time.Time // from here on
	days  time.Time // from here on
}

// windowSince makes whole minutes of a window within the last week, and whole hours
// of a longer one, since minutes are not kept for longer. Days are those of UTC.
func windowSince(since, now time.Time) window {
	since = since.UTC().Truncate(time.Minute)
	if since.Before(now.UTC().Truncate(time.Minute).Add(-week)) {
		since = since.Truncate(time.Hour)
	}
	w := window{since: since, hours: ceil(since, time.Hour)}
	w.days = ceil(w.hours, 24*time.Hour)
	return w
}

func ceil(t time.Time, d time.Duration) time.Time {
	if down := t.Truncate(d); down.Before(t) {
		return down.Add(d)
	}
	return t
}

const sumAll = `
SELECT topic, partition, %[1]s FROM (
	SELECT topic, partition, %[2]s FROM dedup_stat WHERE consumer_group = @group
	UNION ALL
	SELECT topic, partition, %[2]s FROM dedup_stat_rollup WHERE span = 'ever' AND consumer_group = @group
) AS s GROUP BY topic, partition`

const sumWindow = `
SELECT topic, partition, %[1]s FROM (
	SELECT topic, partition, %[2]s FROM dedup_stat WHERE consumer_group = @group AND minute >= @since
	UNION ALL
	SELECT topic, partition, %[2]s FROM dedup_stat_rollup WHERE span = 'minute' AND consumer_group = @group AND at >= @since AND at < @hours
	UNION ALL
	SELECT topic, partition, %[2]s FROM dedup_stat_rollup WHERE span = 'hour' AND consumer_group = @group AND at >= @hours AND at < @days
	UNION ALL
	SELECT topic, partition, %[2]s FROM dedup_stat_rollup WHERE span = 'day' AND consumer_group = @group AND at >= @days
) AS s GROUP BY topic, partition`

// countersOf sums the counters of each partition since an instant; the zero time
// means all that was ever counted.
func countersOf(db *gorm.DB, group string, since time.Time) (partitionMap, error) {
	statement, args := sumAll, []any{sql.Named("group", group)}
	if !since.IsZero() {
		now, err := databaseTime(db)
		if err != nil {
			return nil, err
		}
		w := windowSince(since, now)
		statement, args = sumWindow, append(args, sql.Named("since", w.since), sql.Named("hours", w.hours), sql.Named("days", w.days))
	}
	rows, err := sums(db, statement, args)
	if err != nil {
		return nil, fmt.Errorf("sum dedup_stat: %w", err)
	}
	partitions := partitionMap{}
	for i := range rows {
		r := &rows[i]
		partitions.at(r.Stat.Topic, r.Stat.Partition).Counters = r.counters()
	}
	return partitions, nil
}

// sums runs a statement over the counters. Each finds its rows by an index; the planner,
// which does not know that they lie together, may hold that for dearer than it is.
func sums(db *gorm.DB, statement string, args []any) (rows []dedupDetail, err error) {
	totals, columns := totalColumns()
	if err := db.Exec("SET LOCAL enable_seqscan = off").Error; err != nil {
		return nil, err
	}
	if err := db.Raw(fmt.Sprintf(statement, totals, columns), args...).Find(&rows).Error; err != nil {
		return nil, err
	}
	return rows, db.Exec("SET LOCAL enable_seqscan = on").Error
}

// totalColumns are the counters summed up, and by themselves.
func totalColumns() (totals, columns string) {
	var sums []string
	for _, c := range sumColumns() {
		sums = append(sums, fmt.Sprintf("sum(%[1]s)::bigint AS %[1]s", c))
	}
	for _, c := range peakColumns() {
		sums = append(sums, fmt.Sprintf("max(%[1]s) AS %[1]s", c))
	}
	return strings.Join(sums, ", "), strings.Join(append(sumColumns(), peakColumns()...), ", ")
}

// databaseTime is the database's clock: the one by which minutes are forgotten may
// be another, by less than the hour that they are kept beyond their week.
func databaseTime(db *gorm.DB) (now time.Time, err error) {
	if err := db.Raw(`SELECT now()`).Row().Scan(&now); err != nil {
		return now, fmt.Errorf("the database's time: %w", err)
	}
	return now, nil
}

const sumSeries = `
SELECT minute, %[1]s FROM (
	SELECT date_trunc(@step, minute, 'UTC') AS minute, %[2]s FROM dedup_stat WHERE consumer_group = @group AND minute >= @since
	UNION ALL
	SELECT at AS minute, %[2]s FROM dedup_stat_rollup WHERE span = @step AND consumer_group = @group AND at >= @since
) AS s GROUP BY minute ORDER BY minute`

// DedupSeries implements [domain.Archive].
func (s *Store) DedupSeries(ctx context.Context, group string, since time.Time, step domain.SeriesStep) (domain.DedupSeries, error) {
	series := domain.DedupSeries{Step: step}
	if _, err := domain.ParseSeriesStep(string(step)); err != nil {
		return series, err
	}
	var rows []dedupDetail
	err := snapshot(ctx, s.archive, func(db *gorm.DB) error {
		now, err := databaseTime(db)
		if err != nil {
			return err
		}
		series.Since = domain.SeriesStart(since, now, step)
		rows, err = sums(db, sumSeries, []any{sql.Named("step", string(step)), sql.Named("group", group), sql.Named("since", series.Since)})
		if err != nil {
			return fmt.Errorf("read dedup_stat over time: %w", err)
		}
		return nil
	})
	for i := range rows {
		series.Points = append(series.Points, domain.SeriesPoint{At: rows[i].Stat.Minute, Counters: rows[i].counters()})
	}
	return series, err
}
