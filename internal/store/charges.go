package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

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
	IntendedAt       *time.Time
	FirstAttemptAt   *time.Time
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
		IntendedAt:  orZero(c.IntendedAt), FirstAttemptAt: orZero(c.FirstAttemptAt),
	}, nil
}

// chargeTable is charge with all its columns.
func chargeTable() table {
	return table{"charge", columnNames(chargeColumns + ", intended_at, first_attempt_at")}
}

// The order is that of the locks, like that of intents.
const insertCharge = `
INSERT INTO charge (` + chargeColumns + `, intended_at, first_attempt_at)
SELECT * FROM unnest(?::uuid[], ?::bigint[], ?::bigint[], ?::numeric[], ?::text[], ?::text[], ?::text[], ?::text[], ?::integer[],
	?::boolean[], ?::timestamptz[], ?::timestamptz[], ?::bytea[], ?::text[], ?::integer[], ?::bigint[],
	?::timestamptz[], ?::timestamptz[]
) AS u (` + chargeColumns + `, intended_at, first_attempt_at)
ORDER BY event_id
ON CONFLICT DO NOTHING`

// insertCharges writes final results. Whether the event or its order is final already, the decision rested on something that
// is no longer so: [domain.ErrMoved].
func (t tx) insertCharges(ctx context.Context, charges []domain.Charge) error {
	ordered := refs(charges)
	slices.SortFunc(ordered, func(a, b *domain.Charge) int { return bytes.Compare(a.EventID[:], b.EventID[:]) })
	for chunk := range slices.Chunk(ordered, maxRows) {
		if len(chunk) >= minCopied {
			if err := copyRows(ctx, t.conn, true, chargeTable(), len(chunk), cellsOf(chunk)); err != nil {
				return met("copy charge", err)
			}
			continue
		}
		// No conflict target, on purpose: either key says so.
		result := t.db.WithContext(ctx).Exec(insertCharge, params(cellsOf(chunk))...)
		if result.Error != nil {
			return fmt.Errorf("insert charge: %w", result.Error)
		}
		if err := moved("insert charge", result, len(chunk)); err != nil {
			return err
		}
	}
	return nil
}

func cellsOf(charges []*domain.Charge) []columnar {
	return []columnar{
		columnOf(charges, func(c *domain.Charge) pgtype.UUID { return toUUID(c.EventID) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Int8 { return toInt8(c.OrderID) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Int8 { return toInt8(c.CustomerID) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Numeric { return toNumeric(c.Amount) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Text { return toText(c.Amount.Currency().Code()) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Text { return toText(string(c.Status)) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Text { return orNull(c.ProviderChargeID) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Text { return orNull(c.DeclineCode) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Int8 { return toInt(c.Attempts) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Bool { return toBool(c.ClaimsOrder) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Timestamptz { return toTime(c.OccurredAt) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Timestamptz { return toTime(c.SettledAt) }),
		columnOf(charges, func(c *domain.Charge) blob { return c.Fingerprint[:] }),
		columnOf(charges, func(c *domain.Charge) pgtype.Text { return toText(c.Source.Topic) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Int4 { return toInt4(c.Source.Partition) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Int8 { return toInt8(c.Source.Offset) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Timestamptz { return timeOrNull(c.IntendedAt) }),
		columnOf(charges, func(c *domain.Charge) pgtype.Timestamptz { return timeOrNull(c.FirstAttemptAt) }),
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
