package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// pageView is one page of a list.
type pageView[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"` // the cursor of the next page; null at the end
}

func viewPage[From, To any](page domain.Page[From], view func(*From) To) pageView[To] {
	out := pageView[To]{Items: make([]To, len(page.Items)), Next: optional(page.Next)}
	for i := range page.Items {
		out.Items[i] = view(&page.Items[i])
	}
	return out
}

// sourceView is where a record stands in Kafka.
type sourceView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func viewSource(c domain.Coordinates) sourceView {
	return sourceView{Topic: c.Topic, Partition: c.Partition, Offset: c.Offset}
}

// chargeView is a final charge.
type chargeView struct {
	EventID          uuid.UUID           `json:"event_id"`
	OrderID          int64               `json:"order_id"`
	CustomerID       int64               `json:"customer_id"`
	Amount           string              `json:"amount"` // exact decimal
	Currency         string              `json:"currency"`
	Status           domain.ChargeStatus `json:"status"`
	ProviderChargeID *string             `json:"provider_charge_id"`
	DeclineCode      *string             `json:"decline_code"`
	Attempts         int                 `json:"attempts"`
	ClaimsOrder      bool                `json:"claims_order"`
	OccurredAt       time.Time           `json:"occurred_at"`
	SettledAt        time.Time           `json:"settled_at"`
	Source           sourceView          `json:"source"`
}

func viewCharge(c *domain.Charge) chargeView {
	return chargeView{
		EventID: c.EventID, OrderID: c.OrderID, CustomerID: c.CustomerID,
		Amount: c.Amount.Decimal(), Currency: c.Amount.Currency().Code(), Status: c.Status,
		ProviderChargeID: optional(c.ProviderChargeID), DeclineCode: optional(c.DeclineCode),
		Attempts: c.Attempts, ClaimsOrder: c.ClaimsOrder,
		OccurredAt: c.OccurredAt.UTC(), SettledAt: c.SettledAt.UTC(), Source: viewSource(c.Source),
	}
}

// charges lists final charges, newest first.
func (s *Server) charges(r *http.Request) (any, error) {
	params, err := parseParams(r, paramOrderID, paramStatus, paramCursor, paramLimit)
	if err != nil {
		return nil, err
	}
	var filter domain.ChargeFilter
	if filter.OrderID, err = params.integer(paramOrderID, 1<<63-1); err != nil {
		return nil, err
	}
	if filter.Status, err = oneOf(params, paramStatus, domain.ChargeStatuses()); err != nil {
		return nil, err
	}
	if filter.Cursor, filter.Limit, err = params.page(); err != nil {
		return nil, err
	}
	page, err := query(s, r, func(ctx context.Context) (domain.Page[domain.Charge], error) {
		return s.deps.Archive.Charges(ctx, filter)
	})
	if err != nil {
		return nil, err
	}
	return viewPage(page, viewCharge), nil
}
