package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// Open implements [domain.Book]. The rows go in together; where one of them
// meets a lock that is held for long, they are repeated one by one, so that only
// that one is kept out.
func (s *Store) Open(ctx context.Context, intents []domain.Intent) (map[uuid.UUID]bool, error) {
	ordered := refs(intents)
	slices.SortFunc(ordered, byOrder)
	opened := make(map[uuid.UUID]bool, len(ordered))
	for chunk := range chunks(ordered, recordBytes) {
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

func (s *Store) openEach(ctx context.Context, intents []*domain.Intent, opened map[uuid.UUID]bool) error {
	for i := range intents {
		if err := s.open(ctx, intents[i:i+1], opened); err != nil && sqlState(err) != lockNotAvail {
			return err
		}
	}
	return nil
}

// open inserts intents, all of them in one transaction of their own.
func (s *Store) open(ctx context.Context, intents []*domain.Intent, opened map[uuid.UUID]bool) error {
	if copies(intents, recordBytes) {
		switch err := s.openByCopy(ctx, intents); {
		case err == nil:
			mark(opened, intents)
			return nil
		case !errors.Is(err, domain.ErrMoved):
			return err
		}
	}
	// No conflict target, on purpose: the event's own intent and a claim on its
	// order both keep a row out, and the look that follows tells them apart.
	n, err := insertIntents(s.side.WithContext(ctx), intents, "ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	if n == len(intents) {
		mark(opened, intents)
		return nil
	}
	return s.ours(ctx, intents, opened)
}

// openByCopy is the swift way for as long as nothing is in the way, which is nearly always: [domain.ErrMoved] where something
// is, and then none of them is there.
func (s *Store) openByCopy(ctx context.Context, intents []*domain.Intent) error {
	return onConn(ctx, s.side, func(_ *gorm.DB, conn *sql.Conn) error { return copyIntents(ctx, conn, intents) })
}

func mark(opened map[uuid.UUID]bool, intents []*domain.Intent) {
	for _, in := range intents {
		opened[in.EventID] = true
	}
}

// ours finds the intents that carry our fresh tokens.
func (s *Store) ours(ctx context.Context, intents []*domain.Intent, opened map[uuid.UUID]bool) error {
	var ids []uuid.UUID
	err := s.side.WithContext(ctx).Model(&chargeIntent{}).
		Where("event_id = ANY(?) AND token = ANY(?)", columnOf(intents, eventID),
			columnOf(intents, func(in *domain.Intent) pgtype.UUID { return toUUID(in.Token) })).
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

// Those who call are looked through one by one: they are as many as there are charges in
// flight, and an index would cost each of them more than the look now and then.
const selectStray = `
SELECT i.* FROM charge_intent AS i
WHERE NOT i.claimed AND i.state = 'calling' AND i.lease_until <= ?
	AND EXISTS (SELECT FROM charge AS c WHERE c.event_id = i.event_id)
LIMIT 1 FOR UPDATE OF i SKIP LOCKED`

// Stray implements [domain.Tx].
func (t tx) Stray(ctx context.Context, now time.Time) (*domain.Intent, error) {
	var rows []chargeIntent
	if err := t.db.WithContext(ctx).Raw(selectStray, now).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("find stray charge_intent: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0].intent()
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

// eventID is the cell of a column of event ids.
func eventID(in *domain.Intent) pgtype.UUID { return toUUID(in.EventID) }

// byOrder is the order in which intents are locked and inserted everywhere.
func byOrder(a, b *domain.Intent) int {
	return cmp.Or(cmp.Compare(a.OrderID, b.OrderID), bytes.Compare(a.EventID[:], b.EventID[:]))
}
