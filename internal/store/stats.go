package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// dedupStat is a row of dedup_stat, as far as nearly every batch has to do with it.
type dedupStat struct {
	ConsumerGroup  string    `gorm:"primaryKey"`
	Topic          string    `gorm:"primaryKey"`
	Partition      int32     `gorm:"primaryKey;autoIncrement:false"`
	Minute         time.Time `gorm:"primaryKey"`
	Received       int64
	Processed      int64
	Recovered      int64
	Redelivered    int64
	Republished    int64
	Conflicting    int64
	Invalid        int64
	Captured       int64
	Declined       int64
	DuplicateOrder int64
	Discarded      int64
	NonV7          int64 `gorm:"column:non_v7"`
}

func (dedupStat) TableName() string { return "dedup_stat" }

// dedupDetail is a whole row of dedup_stat.
type dedupDetail struct {
	Stat           dedupStat `gorm:"embedded"`
	Delay1m        int64     `gorm:"column:delay_1m"`
	Delay10m       int64     `gorm:"column:delay_10m"`
	Delay1h        int64     `gorm:"column:delay_1h"`
	Delay6h        int64     `gorm:"column:delay_6h"`
	Delay1d        int64     `gorm:"column:delay_1d"`
	Delay3d        int64     `gorm:"column:delay_3d"`
	Delay7d        int64     `gorm:"column:delay_7d"`
	Delay30d       int64     `gorm:"column:delay_30d"`
	DelayLonger    int64
	DelayForgotten int64
	IDAhead        int64 `gorm:"column:id_ahead"`
	IDAheadMaxMs   int64 `gorm:"column:id_ahead_max_ms"`
}

func (dedupDetail) TableName() string { return "dedup_stat" }

// outcomeColumns are the counters of every batch, and detailColumns those that only
// duplicates and ids ahead of our clock change. All of them are sums.
func outcomeColumns() []string {
	return []string{
		"received", "processed", "recovered", "redelivered", "republished", "conflicting",
		"invalid", "captured", "declined", "duplicate_order", "discarded", "non_v7",
	}
}

func detailColumns() []string {
	columns := []string{"id_ahead"}
	for _, b := range domain.DelayBuckets() {
		columns = append(columns, "delay_"+b.String())
	}
	return columns
}

// peakColumns are the counters of which the largest counts, and not the sum.
func peakColumns() []string { return []string{"id_ahead_max_ms"} }

// statOf returns the row of a key without its details.
func statOf(k domain.StatKey, n *domain.Counters) dedupStat {
	return dedupStat{
		ConsumerGroup: k.Group, Topic: k.Topic, Partition: k.Partition, Minute: k.Minute,
		Received: n.Received, Processed: n.Processed, Recovered: n.Recovered,
		Redelivered: n.Redelivered, Republished: n.Republished, Conflicting: n.Conflicting,
		Invalid: n.Invalid, Captured: n.Captured, Declined: n.Declined,
		DuplicateOrder: n.DuplicateOrder, Discarded: n.Discarded, NonV7: n.NonV7,
	}
}

// detailOf returns the whole row of a key.
func detailOf(k domain.StatKey, n *domain.Counters) dedupDetail {
	d := dedupDetail{Stat: statOf(k, n), IDAhead: n.IDAhead, IDAheadMaxMs: n.IDAheadMax.Milliseconds()}
	for b, into := range d.delays() {
		*into = n.Delays[b]
	}
	return d
}

// delays are the columns of the buckets.
func (d *dedupDetail) delays() [len(domain.Counters{}.Delays)]*int64 {
	return [...]*int64{
		domain.DelayMinute: &d.Delay1m, domain.DelayTenMinutes: &d.Delay10m, domain.DelayHour: &d.Delay1h,
		domain.DelaySixHours: &d.Delay6h, domain.DelayDay: &d.Delay1d, domain.DelayThreeDays: &d.Delay3d,
		domain.DelayWeek: &d.Delay7d, domain.DelayMonth: &d.Delay30d, domain.DelayLonger: &d.DelayLonger,
		domain.DelayForgotten: &d.DelayForgotten,
	}
}

// counters returns what the row says.
func (d *dedupDetail) counters() domain.Counters {
	n := domain.Counters{
		Received: d.Stat.Received, Processed: d.Stat.Processed, Recovered: d.Stat.Recovered,
		Redelivered: d.Stat.Redelivered, Republished: d.Stat.Republished, Conflicting: d.Stat.Conflicting,
		Invalid: d.Stat.Invalid, Captured: d.Stat.Captured, Declined: d.Stat.Declined,
		DuplicateOrder: d.Stat.DuplicateOrder, Discarded: d.Stat.Discarded, NonV7: d.Stat.NonV7,
		IDAhead: d.IDAhead, IDAheadMax: time.Duration(d.IDAheadMaxMs) * time.Millisecond,
	}
	for b, from := range d.delays() {
		n.Delays[b] = *from
	}
	return n
}

// Count implements [domain.Tx]. The rows are locked in the order of their keys.
func (t tx) Count(ctx context.Context, stats domain.Stats) error {
	keys := slices.SortedFunc(maps.Keys(stats), byKey)
	keys = slices.DeleteFunc(keys, func(k domain.StatKey) bool { return stats[k] == (domain.Counters{}) })
	if len(keys) == 0 {
		return nil
	}
	if !slices.ContainsFunc(keys, func(k domain.StatKey) bool { return detailed(stats[k]) }) {
		return upsert(ctx, t.db, rowsOf(keys, stats, statOf), addition(outcomeColumns(), nil))
	}
	return upsert(ctx, t.db, rowsOf(keys, stats, detailOf), addition(slices.Concat(outcomeColumns(), detailColumns()), peakColumns()))
}

// detailed reports whether the counters say more than every batch does.
func detailed(n domain.Counters) bool {
	return n.Delays != domain.Counters{}.Delays || n.IDAhead != 0 || n.IDAheadMax != 0
}

func rowsOf[R any](keys []domain.StatKey, stats domain.Stats, row func(domain.StatKey, *domain.Counters) R) []R {
	rows := make([]R, len(keys))
	for i, k := range keys {
		n := stats[k]
		rows[i] = row(k, &n)
	}
	return rows
}

func upsert[R any](ctx context.Context, db *gorm.DB, rows []R, change clause.Set) error {
	err := db.WithContext(ctx).Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "consumer_group"}, {Name: "topic"}, {Name: "partition"}, {Name: "minute"}},
		DoUpdates: change,
	}).Create(&rows).Error
	if err != nil {
		return fmt.Errorf("upsert dedup_stat: %w", err)
	}
	return nil
}

// addition adds the inserted counters to those that are there; of peaks it leaves
// the larger one.
func addition(sums, peaks []string) clause.Set {
	set := make(clause.Set, 0, len(sums)+len(peaks))
	assign := func(column, format string) {
		set = append(set, clause.Assignment{Column: clause.Column{Name: column}, Value: gorm.Expr(fmt.Sprintf(format, column))})
	}
	for _, c := range sums {
		assign(c, "dedup_stat.%[1]s + excluded.%[1]s")
	}
	for _, c := range peaks {
		assign(c, "greatest(dedup_stat.%[1]s, excluded.%[1]s)")
	}
	return set
}

func byKey(a, b domain.StatKey) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic),
		cmp.Compare(a.Partition, b.Partition), a.Minute.Compare(b.Minute),
	)
}
