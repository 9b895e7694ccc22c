package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// Open implements [domain.Book]. The rows go in together; where one of them
// meets a lock that is held for long, they are repeated one by one, so that only
// that one is kept out.
func (s *Store) Open(ctx context.Context, intents []domain.Intent) (map[uuid.UUID]bool, error) {
	ordered := slices.SortedFunc(slices.Values(intents), byOrder)
	opened := make(map[uuid.UUID]bool, len(ordered))
	for chunk := range slices.Chunk(ordered, maxRows) {
		err := s.open(ctx, chunk, opened)
		if sqlState(err) == lockNotAvail && len(chunk) > 1 {
			err = s.openEach(ctx, chunk, opened)
		}
		if err != nil && sqlState(err) != lockNotAvail {
			return nil, translate(err)
		}
	}
	return opened, nil
}

func (s *Store) openEach(ctx context.Context, intents []domain.Intent, opened map[uuid.UUID]bool) error {
	for i := range intents {
		if err := s.open(ctx, intents[i:i+1], opened); err != nil && sqlState(err) != lockNotAvail {
			return err
		}
	}
	return nil
}

// open inserts intents in one statement, which is its own transaction.
func (s *Store) open(ctx context.Context, intents []domain.Intent, opened map[uuid.UUID]bool) error {
	rows, err := intentRows(intents)
	if err != nil {
		return err
	}
	// No conflict target, on purpose: the event's own intent and a claim on its
	// order both keep a row out, and the look that follows tells them apart.
	result := s.side.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&rows)
	if result.Error != nil {
		return fmt.Errorf("insert charge_intent: %w", result.Error)
	}
	if int(result.RowsAffected) == len(intents) {
		for i := range intents {
			opened[intents[i].EventID] = true
		}
		return nil
	}
	return s.ours(ctx, intents, opened)
}

// ours finds the intents that carry our fresh tokens.
func (s *Store) ours(ctx context.Context, intents []domain.Intent, opened map[uuid.UUID]bool) error {
	tokens := make([]uuid.UUID, len(intents))
	for i := range intents {
		tokens[i] = intents[i].Token
	}
	var ids []uuid.UUID
	err := s.side.WithContext(ctx).Model(&chargeIntent{}).
		Where("event_id = ANY(?) AND token = ANY(?)", uuids(eventIDs(intents)), uuids(tokens)).
		Pluck("event_id", &ids).Error
	if err != nil {
		return fmt.Errorf("read charge_intent: %w", err)
	}
	for _, id := range ids {
		opened[id] = true
	}
	return nil
}

// Lock implements [domain.Tx].
func (t tx) Lock(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*domain.Intent, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []chargeIntent
	err := t.db.WithContext(ctx).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Where("event_id = ANY(?)", uuids(ids)).Order("order_id, event_id").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("lock charge_intent: %w", err)
	}
	return intentsByEvent(rows)
}

// Due implements [domain.Tx].
func (t tx) Due(ctx context.Context, now time.Time) (*domain.Intent, error) {
	var rows []chargeIntent
	err := t.db.WithContext(ctx).
		Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsSkipLocked}).
		Where("claimed AND state IN ('waiting', 'calling', 'unknown', 'answered') AND due_at <= ?", now).
		Order("due_at").Limit(1).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("find due charge_intent: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0].intent()
}

// Write implements [domain.Tx].
func (t tx) Write(ctx context.Context, w domain.Writes) error {
	db := t.db.WithContext(ctx)
	if err := compare(db, slices.Concat(w.Update, w.Delete)); err != nil {
		return err
	}
	if err := insertIntents(db, w.Insert); err != nil {
		return err
	}
	if err := updateIntents(db, w.Update); err != nil {
		return err
	}
	if err := deleteIntents(db, w.Delete); err != nil {
		return err
	}
	return insertCharges(db, w.Charges)
}

func insertIntents(db *gorm.DB, intents []domain.Intent) error {
	slices.SortFunc(intents, byOrder)
	for chunk := range slices.Chunk(intents, maxRows) {
		rows, err := intentRows(chunk)
		if err != nil {
			return err
		}
		result := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "event_id"}}, DoNothing: true}).Create(&rows)
		if result.Error != nil {
			return fmt.Errorf("insert charge_intent: %w", result.Error)
		}
		if int(result.RowsAffected) != len(chunk) {
			return fmt.Errorf("insert charge_intent: %w", domain.ErrMoved)
		}
	}
	return nil
}

// updateIntents writes the intents one by one: most batches change few of them.
func updateIntents(db *gorm.DB, intents []domain.Intent) error {
	slices.SortFunc(intents, byOrder)
	for i := range intents {
		row, err := intentRow(&intents[i])
		if err != nil {
			return err
		}
		result := db.Model(&chargeIntent{}).Where("event_id = ?", row.EventID).
			Select("State", "Claimed", "MaybeSent", "Token", "Owner", "LeaseUntil", "DueAt", "FirstAttemptAt", "Attempts", "Answer", "LastError", "ConsumerGroup").
			Updates(&row)
		switch {
		case sqlState(result.Error) == uniqueViolation:
			return fmt.Errorf("update charge_intent %s: %w: %w", row.EventID, domain.ErrOrderTaken, result.Error)
		case result.Error != nil:
			return fmt.Errorf("update charge_intent %s: %w", row.EventID, result.Error)
		case result.RowsAffected != 1:
			return fmt.Errorf("update charge_intent %s: %w", row.EventID, domain.ErrMoved)
		}
	}
	return nil
}

func deleteIntents(db *gorm.DB, intents []domain.Intent) error {
	if len(intents) == 0 {
		return nil
	}
	result := db.Where("event_id = ANY(?)", uuids(eventIDs(intents))).Delete(&chargeIntent{})
	if result.Error != nil {
		return fmt.Errorf("delete charge_intent: %w", result.Error)
	}
	return nil
}

// compare locks the rows that are to be changed, in the order of the locks, and
// holds them against what they were when they were read.
func compare(db *gorm.DB, intents []domain.Intent) error {
	if len(intents) == 0 {
		return nil
	}
	var rows []struct {
		EventID uuid.UUID
		Token   uuid.UUID
		State   string
		Claimed bool
	}
	err := db.Model(&chargeIntent{}).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
		Select("event_id, token, state, claimed").
		Where("event_id = ANY(?)", uuids(eventIDs(intents))).Order("order_id, event_id").Find(&rows).Error
	if err != nil {
		return fmt.Errorf("lock charge_intent: %w", err)
	}
	now := make(map[uuid.UUID]domain.Version, len(rows))
	for _, r := range rows {
		now[r.EventID] = domain.Version{Token: r.Token, State: domain.IntentState(r.State), Claimed: r.Claimed}
	}
	for i := range intents {
		if now[intents[i].EventID] != intents[i].Was {
			return fmt.Errorf("charge_intent %s: %w", intents[i].EventID, domain.ErrMoved)
		}
	}
	return nil
}

func intentRows(intents []domain.Intent) ([]chargeIntent, error) {
	rows := make([]chargeIntent, len(intents))
	for i := range intents {
		row, err := intentRow(&intents[i])
		if err != nil {
			return nil, err
		}
		rows[i] = row
	}
	return rows, nil
}

func intentsByEvent(rows []chargeIntent) (map[uuid.UUID]*domain.Intent, error) {
	intents := make(map[uuid.UUID]*domain.Intent, len(rows))
	for i := range rows {
		in, err := rows[i].intent()
		if err != nil {
			return nil, err
		}
		intents[in.EventID] = in
	}
	return intents, nil
}

func eventIDs(intents []domain.Intent) []uuid.UUID {
	ids := make([]uuid.UUID, len(intents))
	for i := range intents {
		ids[i] = intents[i].EventID
	}
	return ids
}

// byOrder is the order in which intents are locked and inserted everywhere.
func byOrder(a, b domain.Intent) int {
	return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), bytes.Compare(a.EventID[:], b.EventID[:]))
}
