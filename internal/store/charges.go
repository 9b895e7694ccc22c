package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/billing/internal/domain"
)

// charge is a row of the table charge.
type charge struct {
	EventID          uuid.UUID `gorm:"primaryKey"`
	OrderID          int64
	CustomerID       int64
	Amount           string
	Currency         string
	Status           string
	ProviderChargeID *string
	DeclineCode      *string
	Attempts         int
	ClaimsOrder      bool
	OccurredAt       time.Time
	SettledAt        time.Time
	Fingerprint      []byte
	SourceTopic      string
	SourcePartition  int32
	SourceOffset     int64
}

func (charge) TableName() string { return "charge" }

func (c *charge) charge() (domain.Charge, error) {
	amount, err := domain.StoredMoney(c.Amount, c.Currency)
	if err != nil {
		return domain.Charge{}, fmt.Errorf("charge %s: %w", c.EventID, err)
	}
	return domain.Charge{
		EventID: c.EventID, OrderID: c.OrderID, CustomerID: c.CustomerID, Amount: amount,
		Status: domain.ChargeStatus(c.Status), ProviderChargeID: orEmpty(c.ProviderChargeID), DeclineCode: orEmpty(c.DeclineCode),
		Attempts: c.Attempts, ClaimsOrder: c.ClaimsOrder, OccurredAt: c.OccurredAt, SettledAt: c.SettledAt,
		Fingerprint: domain.Fingerprint(c.Fingerprint),
		Source:      domain.Coordinates{Topic: c.SourceTopic, Partition: c.SourcePartition, Offset: c.SourceOffset},
	}, nil
}

func insertCharges(db *gorm.DB, charges []domain.Charge) error {
	slices.SortFunc(charges, func(a, b domain.Charge) int { return bytes.Compare(a.EventID[:], b.EventID[:]) })
	for chunk := range slices.Chunk(charges, maxRows) {
		rows := make([]charge, len(chunk))
		for i := range chunk {
			c := &chunk[i]
			rows[i] = charge{
				EventID: c.EventID, OrderID: c.OrderID, CustomerID: c.CustomerID,
				Amount: c.Amount.Decimal(), Currency: c.Amount.Currency().Code(), Status: string(c.Status),
				ProviderChargeID: nullText(c.ProviderChargeID), DeclineCode: nullText(c.DeclineCode),
				Attempts: c.Attempts, ClaimsOrder: c.ClaimsOrder, OccurredAt: c.OccurredAt, SettledAt: c.SettledAt,
				Fingerprint: c.Fingerprint[:],
				SourceTopic: c.Source.Topic, SourcePartition: c.Source.Partition, SourceOffset: c.Source.Offset,
			}
		}
		// No conflict target, on purpose: whether the event or its order is final
		// already, the decision rested on something that is no longer so.
		result := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows)
		if result.Error != nil {
			return fmt.Errorf("insert charge: %w", result.Error)
		}
		if int(result.RowsAffected) != len(chunk) {
			return fmt.Errorf("insert charge: %w", domain.ErrMoved)
		}
	}
	return nil
}

// Look implements [domain.Tx].
func (t tx) Look(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	facts := domain.Facts{
		Charges: map[uuid.UUID]domain.Charge{}, Orders: map[int64]domain.Charge{},
		Intents: map[uuid.UUID]*domain.Intent{}, Holders: map[int64]uuid.UUID{},
	}
	if len(subjects) == 0 {
		return facts, nil
	}
	ids := make([]uuid.UUID, len(subjects))
	orders := make([]int64, len(subjects))
	for i, s := range subjects {
		ids[i], orders[i] = s.EventID, s.OrderID
	}
	// Intents first: one that ends between the two statements is then seen with its
	// charge, and never as if there were neither.
	if err := t.lookAtIntents(ctx, ids, orders, &facts); err != nil {
		return facts, err
	}
	return facts, t.lookAtCharges(ctx, ids, orders, &facts)
}

// Final implements [domain.Tx].
func (t tx) Final(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	facts := domain.Facts{Charges: map[uuid.UUID]domain.Charge{}, Orders: map[int64]domain.Charge{}}
	if len(subjects) == 0 {
		return facts, nil
	}
	ids := make([]uuid.UUID, len(subjects))
	orders := make([]int64, len(subjects))
	for i, s := range subjects {
		ids[i], orders[i] = s.EventID, s.OrderID
	}
	return facts, t.lookAtCharges(ctx, ids, orders, &facts)
}

func (t tx) lookAtCharges(ctx context.Context, ids []uuid.UUID, orders []int64, facts *domain.Facts) error {
	var rows []charge
	err := t.db.WithContext(ctx).
		Where("event_id = ANY(?) OR (claims_order AND order_id = ANY(?))", uuids(ids), array(orders)).
		Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read charge: %w", err)
	}
	for i := range rows {
		c, err := rows[i].charge()
		if err != nil {
			return err
		}
		facts.Charges[c.EventID] = c
		if c.ClaimsOrder {
			facts.Orders[c.OrderID] = c
		}
	}
	return nil
}

func (t tx) lookAtIntents(ctx context.Context, ids []uuid.UUID, orders []int64, facts *domain.Facts) error {
	var rows []chargeIntent
	err := t.db.WithContext(ctx).
		Omit("record", "record_key", "record_headers").
		Where("event_id = ANY(?) OR (state IN ('calling', 'unknown', 'answered', 'parked') AND order_id = ANY(?))", uuids(ids), array(orders)).
		Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read charge_intent: %w", err)
	}
	for i := range rows {
		in, err := rows[i].intent()
		if err != nil {
			return err
		}
		facts.Intents[in.EventID] = in
		if in.State.ClaimsOrder() {
			facts.Holders[in.OrderID] = in.EventID
		}
	}
	return nil
}

func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
