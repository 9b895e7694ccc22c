package paymenttest

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/billing/internal/domain"
)

// payload is what a charge is about. Two payloads are the same when they compare
// equal, however they were written.
type payload struct {
	orderID int64
	amount  domain.Money
}

// parsePayload reads a body strictly: exactly the three members, each once, of
// their own type, and an amount whose decimals fit the currency.
func parsePayload(body []byte) (payload, error) {
	var in struct {
		OrderID  int64          `json:"orderId"`
		Amount   jsontext.Value `json:"amount"`
		Currency string         `json:"currency"`
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		return payload{}, fmt.Errorf("body: %w", err)
	}
	if in.OrderID <= 0 {
		return payload{}, errors.New("orderId: must be above zero")
	}
	if in.Amount.Kind() != '0' {
		return payload{}, errors.New("amount: must be a number")
	}
	amount, err := domain.ParseMoney(string(in.Amount), in.Currency)
	if err != nil {
		return payload{}, fmt.Errorf("amount: %w", err)
	}
	return payload{orderID: in.OrderID, amount: amount}, nil
}
