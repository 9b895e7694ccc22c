package domain

import (
	"context"

	"github.com/google/uuid"
)

// Finder looks a charge up at the provider by our own key, where the provider
// can do that. Asking changes nothing there, and may be repeated.
type Finder interface {
	// Find returns what the provider knows of the key. An error means that it did
	// not say, which is no answer in either direction.
	Find(ctx context.Context, key uuid.UUID) (Found, error)
}

// Found is what the provider knows of a key.
type Found struct {
	Known            bool         // false: the provider has never charged or declined under this key
	Status           ChargeStatus // ChargeCaptured or ChargeDeclined
	ProviderChargeID string       // empty where it is no sane string
	DeclineCode      string       // likewise
	OrderID          int64
	Amount           Money
}
