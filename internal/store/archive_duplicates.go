package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

func (d *loggedDuplicate) duplicate() domain.Duplicate {
	out := domain.Duplicate{
		ID: d.ID, Group: d.ConsumerGroup, EventID: d.EventID, Kind: domain.DuplicateKind(d.Kind),
		Record: domain.Coordinates{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset},
		SeenAt: d.SeenAt, FirstSeenAt: orZero(d.FirstSeenAt),
	}
	if d.FirstTopic != nil && d.FirstPartition != nil && d.FirstOffset != nil { // all or none, by a check
		out.First = domain.Coordinates{Topic: *d.FirstTopic, Partition: *d.FirstPartition, Offset: *d.FirstOffset}
	}
	return out
}

// Duplicates implements [domain.Archive]. The log is bounded, so that a filter
// without an index reads at most that much of it.
func (s *Store) Duplicates(ctx context.Context, f domain.DuplicateFilter) (domain.Page[domain.Duplicate], error) {
	var page domain.Page[domain.Duplicate]
	limit := pageLimit(f.Limit)
	rows, err := loggedOf(s.archive.WithContext(ctx), f, limit+1)
	if err != nil {
		return page, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = strconv.FormatInt(rows[limit-1].ID, 10)
	}
	page.Items = rows
	return page, nil
}

// loggedOf reads the newest n lines of a filter, those behind its cursor.
func loggedOf(db *gorm.DB, f domain.DuplicateFilter, n int) ([]domain.Duplicate, error) {
	q := db.Where("consumer_group = ?", f.Group).Order("id DESC").Limit(n)
	if f.EventID != uuid.Nil {
		q = q.Where("event_id = ?", f.EventID)
	}
	if f.Kind != "" {
		q = q.Where("kind = ?", string(f.Kind))
	}
	if f.Cursor != "" {
		last, err := idCursor(f.Cursor)
		if err != nil {
			return nil, err
		}
		q = q.Where("id < ?", last)
	}
	var rows []loggedDuplicate
	if err := q.Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read duplicate_log: %w", err)
	}
	duplicates := make([]domain.Duplicate, len(rows))
	for i := range rows {
		duplicates[i] = rows[i].duplicate()
	}
	return duplicates, nil
}

// idCursor reads the cursor of a list that is ordered by its rows' ids.
func idCursor(cursor string) (int64, error) {
	last, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || last < 1 || strconv.FormatInt(last, 10) != cursor {
		return 0, domain.ErrCursor
	}
	return last, nil
}
