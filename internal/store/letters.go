package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// deadLetter is a row of dead_letter.
type deadLetter struct {
	ID              int64 `gorm:"primaryKey;autoIncrement"`
	Topic           string
	Partition       int32
	Offset          int64
	ConsumerGroup   string
	RecordTimestamp time.Time
	Key             []byte
	Value           []byte
	Headers         []byte
	Reason          string
	Detail          string
	State           string
	EventID         *uuid.UUID
	OrderID         *int64
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

func (deadLetter) TableName() string { return "dead_letter" }

func letterRow(l *domain.Letter) (deadLetter, error) {
	headers, err := domain.EncodeHeaders(l.Record.Headers)
	if err != nil {
		return deadLetter{}, err
	}
	row := deadLetter{
		Topic: l.Record.Topic, Partition: l.Record.Partition, Offset: l.Record.Offset, ConsumerGroup: l.Group,
		RecordTimestamp: l.Record.Timestamp, Key: l.Record.Key, Value: l.Record.Value, Headers: headers,
		Reason: string(l.Reason), Detail: l.Detail, State: string(l.State), CreatedAt: l.At, UpdatedAt: l.At,
	}
	if l.EventID != uuid.Nil {
		row.EventID = &l.EventID
	}
	if l.OrderID != 0 {
		row.OrderID = &l.OrderID
	}
	return row, nil
}

func (d *deadLetter) letter() (domain.Letter, error) {
	headers, err := domain.DecodeHeaders(d.Headers)
	if err != nil {
		return domain.Letter{}, fmt.Errorf("dead letter %d: %w", d.ID, err)
	}
	l := domain.Letter{
		ID: d.ID, Reason: domain.Reason(d.Reason), Detail: d.Detail, State: domain.LetterState(d.State),
		Group: d.ConsumerGroup, At: d.CreatedAt,
		Record: domain.Record{
			Coordinates: d.coordinates(), Timestamp: d.RecordTimestamp, Key: d.Key, Value: d.Value, Headers: headers,
		},
	}
	if d.EventID != nil {
		l.EventID = *d.EventID
	}
	if d.OrderID != nil {
		l.OrderID = *d.OrderID
	}
	return l, nil
}

func (d *deadLetter) coordinates() domain.Coordinates {
	return domain.Coordinates{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset}
}

// Park implements [domain.Tx]. Letters are written in the order of their
// coordinates; those that reopen are told from those that are written once.
func (t tx) Park(ctx context.Context, letters []domain.Letter) (map[domain.Coordinates]bool, error) {
	fresh := make(map[domain.Coordinates]bool, len(letters))
	slices.SortStableFunc(letters, byCoordinates)
	for i := range letters {
		row, err := letterRow(&letters[i])
		if err != nil {
			return nil, err
		}
		result := t.db.WithContext(ctx).Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "topic"}, {Name: "partition"}, {Name: "offset"}},
			DoNothing: true,
		}).Create(&row)
		switch {
		case result.Error != nil:
			return nil, fmt.Errorf("insert dead_letter: %w", result.Error)
		case result.RowsAffected == 1:
			fresh[letters[i].Record.Coordinates] = true
		case letters[i].Reopens:
			if err := t.reopen(ctx, &row); err != nil {
				return nil, err
			}
		}
	}
	return fresh, nil
}

// reopen gives the letter that stands at the row's coordinates the row's reason.
// An upsert could not tell it from a new one: it affects one row either way.
func (t tx) reopen(ctx context.Context, row *deadLetter) error {
	err := t.db.WithContext(ctx).Model(&deadLetter{}).
		Where(`topic = ? AND partition = ? AND "offset" = ?`, row.Topic, row.Partition, row.Offset).
		Updates(map[string]any{"reason": row.Reason, "detail": row.Detail, "state": row.State, "updated_at": row.UpdatedAt}).Error
	if err != nil {
		return fmt.Errorf("reopen dead_letter: %w", err)
	}
	return nil
}

// Resolve implements [domain.Tx]. A letter about another record that gives the
// event's id another meaning stays open: the event's own end says nothing about it.
func (t tx) Resolve(ctx context.Context, ids []uuid.UUID, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	err := t.db.WithContext(ctx).Model(&deadLetter{}).
		Where("event_id = ANY(?) AND state IN ('open', 'replayed') AND reason <> ?", uuids(ids), string(domain.ReasonConflictingPayload)).
		Updates(map[string]any{"state": string(domain.LetterResolved), "updated_at": now}).Error
	if err != nil {
		return fmt.Errorf("update dead_letter: %w", err)
	}
	return nil
}

func byCoordinates(a, b domain.Letter) int {
	x, y := a.Record.Coordinates, b.Record.Coordinates
	return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
}
