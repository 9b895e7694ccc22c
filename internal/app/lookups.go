package app

import (
	"fmt"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
)

// lookUps returns who looks charges up at the provider, for a command that works
// beside the service: nil unless the provider is given and has a look-up. HangUp lets
// go of its connections.
func (s *Settings) lookUps(p Process) (finder domain.Finder, hangUp func(), err error) {
	if !s.Payment.Lookup || p.getenv("PAYMENT_URL") == "" && p.getenv("PAYMENT_URL_FILE") == "" {
		return nil, func() {}, nil
	}
	client, err := payment.New(s.payment(), payment.Tools{})
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("configuration:\n%w", err)}
	}
	return client, client.Close, nil
}
