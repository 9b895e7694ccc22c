package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

var _ domain.Witness = (*Store)(nil)

const selectLettersAt = `
SELECT l.id, l.topic, l.partition, l."offset", l.consumer_group, l.record_timestamp, l.reason, l.detail, l.state,
	l.event_id, l.order_id, l.created_at, l.updated_at
FROM unnest(?::text[], ?::integer[], ?::bigint[]) AS u (topic, partition, "offset")
JOIN dead_letter AS l USING (topic, partition, "offset")`

// intentBytes are the columns of an intent that an audit has no use for.
func intentBytes() []string { return []string{"record", "record_key", "record_headers"} }

// Evidence implements [domain.Witness]. It reads one snapshot, so that an intent
// that ends meanwhile is seen either with its charge or as it was before.
func (s *Store) Evidence(ctx context.Context, group string, ids []uuid.UUID, at []domain.Coordinates) (domain.Evidence, error) {
	found := domain.Evidence{
		Sightings: map[uuid.UUID]domain.Sighting{}, Charges: map[uuid.UUID]domain.Charge{},
		Intents: map[uuid.UUID]*domain.Intent{}, Letters: map[domain.Coordinates]domain.Letter{},
	}
	err := snapshot(ctx, s.archive, func(db *gorm.DB) error {
		if err := lettersAt(db, at, found.Letters); err != nil {
			return err
		}
		if len(ids) == 0 {
			return nil
		}
		var seen []processedEvent
		if err := db.Where("consumer_group = ? AND event_id = ANY(?)", group, uuids(ids)).Find(&seen).Error; err != nil {
			return fmt.Errorf("read processed_event: %w", err)
		}
		for i := range seen {
			found.Sightings[seen[i].EventID] = seen[i].sighting()
		}
		var charges []charge
		if err := db.Where("event_id = ANY(?)", uuids(ids)).Find(&charges).Error; err != nil {
			return fmt.Errorf("read charge: %w", err)
		}
		for i := range charges {
			c, err := charges[i].charge()
			if err != nil {
				return err
			}
			found.Charges[c.EventID] = c
		}
		var intents []chargeIntent
		if err := db.Omit(intentBytes()...).Where("event_id = ANY(?)", uuids(ids)).Find(&intents).Error; err != nil {
			return fmt.Errorf("read charge_intent: %w", err)
		}
		for i := range intents {
			in, err := intents[i].intent()
			if err != nil {
				return err
			}
			found.Intents[in.EventID] = in
		}
		return nil
	})
	return found, err
}

func lettersAt(db *gorm.DB, at []domain.Coordinates, into map[domain.Coordinates]domain.Letter) error {
	var rows []deadLetter
	err := db.Raw(selectLettersAt,
		columnOf(at, func(c domain.Coordinates) pgtype.Text { return toText(c.Topic) }),
		columnOf(at, func(c domain.Coordinates) pgtype.Int4 { return toInt4(c.Partition) }),
		columnOf(at, func(c domain.Coordinates) pgtype.Int8 { return toInt8(c.Offset) }),
	).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read dead_letter: %w", err)
	}
	letters, err := lettersOf(rows)
	if err != nil {
		return err
	}
	for i := range letters {
		into[letters[i].Record.Coordinates] = letters[i]
	}
	return nil
}

// ChargesAfter implements [domain.Witness].
func (s *Store) ChargesAfter(ctx context.Context, mark domain.Mark, limit int) ([]domain.Charge, domain.Mark, error) {
	var rows []charge
	err := s.archive.WithContext(ctx).Where("(settled_at, event_id) > (?, ?)", mark.At, mark.ID).
		Order("settled_at, event_id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, mark, fmt.Errorf("read charge: %w", err)
	}
	charges := make([]domain.Charge, len(rows))
	for i := range rows {
		if charges[i], err = rows[i].charge(); err != nil {
			return nil, mark, err
		}
		mark = domain.Mark{At: rows[i].SettledAt, ID: rows[i].EventID}
	}
	return charges, mark, nil
}

// SightingsAfter implements [domain.Witness].
func (s *Store) SightingsAfter(ctx context.Context, group string, mark domain.Mark, limit int) ([]domain.Sighting, domain.Mark, error) {
	var rows []processedEvent
	err := s.archive.WithContext(ctx).
		Where("consumer_group = ? AND (processed_at, event_id) > (?, ?)", group, mark.At, mark.ID).
		Order("processed_at, event_id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, mark, fmt.Errorf("read processed_event: %w", err)
	}
	sightings := make([]domain.Sighting, len(rows))
	for i := range rows {
		sightings[i] = rows[i].sighting()
		mark = domain.Mark{At: rows[i].ProcessedAt, ID: rows[i].EventID}
	}
	return sightings, mark, nil
}

// IntentsAfter implements [domain.Witness].
func (s *Store) IntentsAfter(ctx context.Context, id uuid.UUID, limit int) ([]domain.Intent, error) {
	var rows []chargeIntent
	err := s.archive.WithContext(ctx).Omit(intentBytes()...).Where("event_id > ?", id).
		Order("event_id").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read charge_intent: %w", err)
	}
	intents := make([]domain.Intent, len(rows))
	for i := range rows {
		in, err := rows[i].intent()
		if err != nil {
			return nil, err
		}
		intents[i] = *in
	}
	return intents, nil
}

// CapturesOf implements [domain.Witness].
func (s *Store) CapturesOf(ctx context.Context, orders []int64) (map[int64]int, map[int64]domain.Charge, error) {
	captures, holders := map[int64]int{}, map[int64]domain.Charge{}
	if len(orders) == 0 {
		return captures, holders, nil
	}
	var rows []charge
	err := s.archive.WithContext(ctx).Where("order_id = ANY(?) AND (claims_order OR status = ?)",
		columnOf(orders, toInt8), string(domain.ChargeCaptured)).Find(&rows).Error
	if err != nil {
		return nil, nil, fmt.Errorf("read charge: %w", err)
	}
	for i := range rows {
		c, err := rows[i].charge()
		if err != nil {
			return nil, nil, err
		}
		if c.Status == domain.ChargeCaptured {
			captures[c.OrderID]++
		}
		holders[c.OrderID] = c
	}
	return captures, holders, nil
}
