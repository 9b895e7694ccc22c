package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// processedEvent is a row of processed_event as it is read.
type processedEvent struct {
	EventID         uuid.UUID `gorm:"primaryKey"`
	ConsumerGroup   string    `gorm:"primaryKey"`
	ProcessedAt     time.Time // the database's now()
	SourceTopic     string
	SourcePartition int32
	SourceOffset    int64
	Fingerprint     []byte
}

func (processedEvent) TableName() string { return "processed_event" }

func (p *processedEvent) sighting() domain.Sighting {
	return domain.Sighting{
		EventID:     p.EventID,
		Source:      domain.Coordinates{Topic: p.SourceTopic, Partition: p.SourcePartition, Offset: p.SourceOffset},
		Fingerprint: domain.Fingerprint(p.Fingerprint), SeenAt: p.ProcessedAt,
	}
}

// errScanMode guards an upgrade of GORM: the claim rests on how it reads rows back.
var errScanMode = errors.New("gorm returned other rows than it inserted")

// Claim implements [domain.Claims].
func (t tx) Claim(ctx context.Context, group string, sightings []domain.Sighting) (domain.Claimed, error) {
	claimed := domain.Claimed{Earlier: map[uuid.UUID]domain.Sighting{}}
	for chunk := range slices.Chunk(sightings, maxRows) {
		fresh, err := t.insertEvents(ctx, group, chunk)
		if err != nil {
			return claimed, err
		}
		if len(fresh) == len(chunk) {
			continue
		}
		if err := t.earlier(ctx, group, chunk, fresh, claimed.Earlier); err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

// insertEvents returns the events that were not there before.
func (t tx) insertEvents(ctx context.Context, group string, sightings []domain.Sighting) (map[uuid.UUID]bool, error) {
	rows := make([]claimRow, steps(len(sightings))) // of its own: GORM overwrites it
	for i := range rows {
		// Behind the last one come copies of it: they meet it, and insert nothing.
		s := &sightings[min(i, len(sightings)-1)]
		rows[i] = claimRow{
			EventID: toUUID(s.EventID), ConsumerGroup: group,
			SourceTopic: s.Source.Topic, SourcePartition: s.Source.Partition, SourceOffset: s.Source.Offset,
			Fingerprint: s.Fingerprint[:],
		}
	}
	result := t.db.WithContext(ctx).Clauses(
		clause.OnConflict{Columns: []clause.Column{{Name: "event_id"}, {Name: "consumer_group"}}, DoNothing: true},
		clause.Returning{},
	).Create(&rows)
	if result.Error != nil {
		return nil, fmt.Errorf("insert processed_event: %w", result.Error)
	}
	if int(result.RowsAffected) != len(rows) {
		return nil, errScanMode
	}
	fresh := make(map[uuid.UUID]bool, len(rows))
	for i := range rows {
		fresh[rows[i].EventID.Bytes] = true
	}
	return fresh, nil
}

// earlier adds the first sightings of the events that are not fresh.
func (t tx) earlier(ctx context.Context, group string, sightings []domain.Sighting, fresh map[uuid.UUID]bool, into map[uuid.UUID]domain.Sighting) error {
	var ids []uuid.UUID
	for _, s := range sightings {
		if !fresh[s.EventID] {
			ids = append(ids, s.EventID)
		}
	}
	var rows []processedEvent
	err := anew(ctx, t.db).Where("consumer_group = ? AND event_id = ANY(?)", group, uuids(ids)).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read processed_event: %w", err)
	}
	if len(rows) != len(ids) {
		return fmt.Errorf("read processed_event: %w", domain.ErrMoved) // emptied by retention this instant
	}
	for i := range rows {
		into[rows[i].EventID] = rows[i].sighting()
	}
	return nil
}

// Unclaim implements [domain.Claims].
func (t tx) Unclaim(ctx context.Context, group string, ids []uuid.UUID) error {
	err := anew(ctx, t.db).
		Where("consumer_group = ? AND event_id = ANY(?)", group, uuids(ids)).
		Delete(&processedEvent{}).Error
	if err != nil {
		return fmt.Errorf("delete processed_event: %w", err)
	}
	return nil
}
