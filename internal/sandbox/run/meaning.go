package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// body is what a record of the orders' topic says, read by other means than the
// service's: what it counts is recounted by this.
type body struct {
	EventID     string          `json:"eventId"`
	OrderID     int64           `json:"orderId"`
	CustomerID  int64           `json:"customerId"`
	TotalAmount json.RawMessage `json:"totalAmount"`
	Currency    string          `json:"currency"`
	OccurredAt  time.Time       `json:"occurredAt"`
}

// take counts a record of the orders' topic. All records of an event have its
// order's key and stand in one partition, whose records come in their order.
func (t *Topic) take(r *kgo.Record) {
	t.Records++
	var b body
	id, err := b.read(r)
	if err != nil {
		t.Foreign++
		return
	}
	t.Events[id]++
	meaning := b.meaning()
	first, known := t.Meanings[id]
	switch {
	case !known:
		t.Meanings[id] = meaning
	case first != meaning:
		t.Conflicting[coordinates(r)] = id
	}
}

func coordinates(r *kgo.Record) string {
	return fmt.Sprintf("%s/%d@%d", r.Topic, r.Partition, r.Offset)
}

// read takes the record's fields, and finds the event id in the body, else in the header.
func (b *body) read(r *kgo.Record) (uuid.UUID, error) {
	if err := json.Unmarshal(r.Value, b); err != nil {
		return uuid.Nil, fmt.Errorf("body: %w", err)
	}
	if b.EventID != "" {
		return uuid.Parse(b.EventID)
	}
	for _, h := range r.Headers {
		if h.Key == "eventId" {
			return uuid.ParseBytes(h.Value)
		}
	}
	return uuid.Nil, errors.New("no event id")
}

// meaning is the same for every way of writing the same order.
func (b *body) meaning() Meaning {
	amount, ok := new(big.Rat).SetString(strings.Trim(string(b.TotalAmount), `"`))
	if !ok {
		amount = new(big.Rat)
	}
	return Meaning{
		OrderID: b.OrderID, CustomerID: b.CustomerID, Amount: amount.RatString(), Currency: b.Currency, OccurredAt: b.OccurredAt.UnixNano(),
	}
}
