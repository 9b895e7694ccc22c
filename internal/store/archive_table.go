package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// unreadable reports whether an error says that a leaf cannot be looked into: it was
// dropped since it was listed (42P01), or is somebody else's who has granted nothing (42501).
// What it holds is left out.
func unreadable(err error) bool {
	return sqlState(err) == "42P01" || sqlState(err) == "42501"
}

const (
	// maxLooked bounds the leaves that are asked for their oldest row.
	maxLooked = 16
	// maxPassed bounds the ids that are passed over for one of version 7.
	maxPassed = 10_000
)

// sizedLeaf is a partition of processed_event. What it holds is on record with the
// planner and the file system: nothing here reads it, or locks it for longer than it
// takes to ask for its size.
type sizedLeaf struct {
	Name       string     // quoted, as it is to stand in a statement
	Low        *uuid.UUID // the first id of its range; nil where it has none
	Fallback   bool       // the default partition
	Rows       int64      // the planner's estimate; -1 before the first analyze
	TableBytes int64      // on disk, without the maps of free and visible space; 0: it surely has no rows
	IndexBytes int64
}

const selectSizes = `
SELECT c.relnamespace::regnamespace || '.' || quote_ident(c.relname) AS name,
	substring(b.bound FROM '''([0-9a-f-]{36})''')::uuid AS low, b.bound = 'DEFAULT' AS fallback,
	c.reltuples::bigint AS rows, coalesce(pg_relation_size(c.oid), 0) AS table_bytes,
	(SELECT coalesce(sum(pg_relation_size(x.indexrelid)), 0)::bigint FROM pg_index AS x WHERE x.indrelid = c.oid) AS index_bytes
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound OFFSET 0) AS b
WHERE i.inhparent = 'processed_event'::regclass
ORDER BY fallback, low NULLS FIRST`

// describeTable describes processed_event without touching more than a few of its
// leaves: no statement names the table itself, whose plan would lock all of them. What
// it names it asks for on its own, so that no lock outlives an answer.
func describeTable(ctx context.Context, db *gorm.DB) (domain.ProcessedEventTable, error) {
	db = db.WithContext(ctx)
	leaves, err := listLeaves(db)
	if err != nil {
		return domain.ProcessedEventTable{}, err
	}
	return describe(db, leaves)
}

func listLeaves(db *gorm.DB) (leaves []sizedLeaf, err error) {
	if err := db.Raw(selectSizes).Scan(&leaves).Error; err != nil {
		return nil, fmt.Errorf("list processed_event: %w", err)
	}
	return leaves, nil
}

func describe(db *gorm.DB, leaves []sizedLeaf) (domain.ProcessedEventTable, error) {
	table := domain.ProcessedEventTable{Rows: -1, Partitions: len(leaves), Default: domain.DefaultPartition{Rows: -1}}
	for i := range leaves {
		l := &leaves[i]
		table.TableBytes += l.TableBytes
		table.IndexBytes += l.IndexBytes
		if l.Rows >= 0 {
			table.Rows = max(table.Rows, 0) + l.Rows
		}
		if l.Fallback {
			table.Default = domain.DefaultPartition{Rows: l.Rows, Bytes: l.TableBytes + l.IndexBytes}
		}
	}
	return table, oldestOf(db, leaves, &table)
}

// oldestOf finds the oldest row and the oldest event. Ranges come in the order of
// their ids: a row of one was processed after its range began, unless its id was
// ahead of the clock, so that a range that began later than the oldest row so far
// holds no older one. Ids of the default partition say nothing about their time.
func oldestOf(db *gorm.DB, leaves []sizedLeaf, table *domain.ProcessedEventTable) error {
	looked := 0
	for i := range leaves {
		l := &leaves[i]
		later := l.Low != nil && table.Oldest != nil && !idTime(*l.Low).Before(*table.Oldest)
		if l.TableBytes == 0 || !l.Fallback && (later || looked == maxLooked) {
			continue
		}
		looked++
		at, found, err := oldestRow(db, l)
		if err != nil {
			return err
		}
		if found && (table.Oldest == nil || at.Before(*table.Oldest)) {
			table.Oldest = &at
		}
		if found && table.OldestEvent == nil {
			if table.OldestEvent, err = oldestEvent(db, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// oldestRow returns when the oldest row of a leaf was processed, by the index on it.
func oldestRow(db *gorm.DB, l *sizedLeaf) (time.Time, bool, error) {
	var at []time.Time
	err := db.Raw("SELECT processed_at FROM " + l.Name + " ORDER BY processed_at LIMIT 1").Scan(&at).Error
	if unreadable(err) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("oldest row of %s: %w", l.Name, err)
	}
	if len(at) == 0 {
		return time.Time{}, false, nil
	}
	return at[0], true, nil
}

// firstV7 is below every id of version 7 that an event can have: it is of 2020.
const firstV7 = "016f5e66-e800-0000-0000-000000000000"

// oldestEvent returns the time in the first id of version 7 of a leaf. In a range
// nearly every id is one; in the default partition few others are passed over,
// since those that are random lie everywhere else.
func oldestEvent(db *gorm.DB, l *sizedLeaf) (*time.Time, error) {
	var ids []uuid.UUID
	err := db.Raw("SELECT event_id FROM (SELECT event_id FROM "+l.Name+" WHERE event_id >= ? ORDER BY event_id LIMIT ?) AS first "+
		"WHERE substring(event_id::text FROM 15 FOR 1) = '7' ORDER BY event_id LIMIT 1", firstV7, maxPassed).Scan(&ids).Error
	if unreadable(err) {
		return nil, nil //nolint:nilnil // nothing to tell
	}
	if err != nil {
		return nil, fmt.Errorf("oldest event of %s: %w", l.Name, err)
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // likewise
	}
	at := idTime(ids[0])
	return &at, nil
}

// idTime returns the time in an id of version 7, or in a bound between such ids.
func idTime(id uuid.UUID) time.Time {
	at, _ := domain.InstantOf(id)
	return at
}
