package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

// Two look-ups by an index each, and not one condition with OR: the plan is then
// the same whatever the planner believes about the tables. A row that both of them
// find comes twice, which does no harm.
const (
	chargeColumns = `event_id, order_id, customer_id, amount, currency, status, provider_charge_id, decline_code, attempts,
	claims_order, occurred_at, settled_at, fingerprint, source_topic, source_partition, source_offset`
	selectCharges = `
SELECT ` + chargeColumns + ` FROM charge WHERE event_id = ANY(?)
UNION ALL
SELECT ` + chargeColumns + ` FROM charge WHERE claims_order AND order_id = ANY(?)`

	openColumns   = `event_id, order_id, fingerprint, token, state, claimed, source_topic, source_partition, source_offset`
	selectIntents = `
SELECT ` + openColumns + ` FROM charge_intent WHERE event_id = ANY(?)
UNION ALL
SELECT ` + openColumns + ` FROM charge_intent WHERE state IN ('calling', 'unknown', 'answered', 'parked') AND order_id = ANY(?)`
)

// Look implements [domain.Tx].
func (t tx) Look(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	facts := newFacts()
	if len(subjects) == 0 {
		return facts, nil
	}
	events, orders := keys(subjects)
	// Intents first: one that ends between the two statements is then seen with its
	// charge, and never as if there were neither.
	if err := t.lookAtIntents(ctx, events, orders, &facts); err != nil {
		return facts, err
	}
	return facts, t.lookAtCharges(ctx, events, orders, &facts)
}

// Final implements [domain.Tx].
func (t tx) Final(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	facts := newFacts()
	if len(subjects) == 0 {
		return facts, nil
	}
	events, orders := keys(subjects)
	return facts, t.lookAtCharges(ctx, events, orders, &facts)
}

func newFacts() domain.Facts {
	return domain.Facts{
		Charges: map[uuid.UUID]domain.Charge{}, Orders: map[int64]domain.Charge{},
		Intents: map[uuid.UUID]*domain.Intent{}, Holders: map[int64]uuid.UUID{},
	}
}

// keys returns the two columns to look by.
func keys(subjects []domain.Subject) (*column[pgtype.UUID], *column[pgtype.Int8]) {
	return columnOf(subjects, func(s domain.Subject) pgtype.UUID { return toUUID(s.EventID) }),
		columnOf(subjects, func(s domain.Subject) pgtype.Int8 { return toInt8(s.OrderID) })
}

func (t tx) lookAtCharges(ctx context.Context, events *column[pgtype.UUID], orders *column[pgtype.Int8], facts *domain.Facts) error {
	var rows []charge
	if err := t.db.WithContext(ctx).Raw(selectCharges, events, orders).Find(&rows).Error; err != nil {
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

// openIntent is what a look needs of an intent.
type openIntent struct {
	EventID         uuid.UUID
	OrderID         int64
	Fingerprint     []byte
	Token           uuid.UUID
	State           string
	Claimed         bool
	SourceTopic     string
	SourcePartition int32
	SourceOffset    int64
}

func (o *openIntent) intent() *domain.Intent {
	in := &domain.Intent{
		EventID: o.EventID, OrderID: o.OrderID, Fingerprint: domain.Fingerprint(o.Fingerprint),
		Token: o.Token, State: domain.IntentState(o.State), Claimed: o.Claimed,
	}
	in.Was = domain.Version{Token: in.Token, State: in.State, Claimed: in.Claimed}
	in.Record.Coordinates = domain.Coordinates{Topic: o.SourceTopic, Partition: o.SourcePartition, Offset: o.SourceOffset}
	return in
}

func (t tx) lookAtIntents(ctx context.Context, events *column[pgtype.UUID], orders *column[pgtype.Int8], facts *domain.Facts) error {
	var rows []openIntent
	if err := t.db.WithContext(ctx).Raw(selectIntents, events, orders).Find(&rows).Error; err != nil {
		return fmt.Errorf("read charge_intent: %w", err)
	}
	for i := range rows {
		in := rows[i].intent()
		facts.Intents[in.EventID] = in
		if in.State.ClaimsOrder() {
			facts.Holders[in.OrderID] = in.EventID
		}
	}
	return nil
}
