package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

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

func (d *deadLetter) letter() (domain.Letter, error) {
	headers, err := domain.DecodeHeaders(d.Headers)
	if err != nil {
		return domain.Letter{}, fmt.Errorf("dead letter %d: %w", d.ID, err)
	}
	l := domain.Letter{
		ID: d.ID, Reason: domain.Reason(d.Reason), Detail: d.Detail, State: domain.LetterState(d.State),
		Group: d.ConsumerGroup, At: d.CreatedAt, ChangedAt: d.UpdatedAt,
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
