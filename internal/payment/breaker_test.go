package payment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
)

// recorded returns after how many of n like answers the breaker trips; 0: not at all.
func recorded(b *payment.Breaker, n int, a domain.Answer) int {
	for i := range n {
		if b.Record(a) {
			return i + 1
		}
	}
	return 0
}

func TestTheBreakerTripsWhenMostChargesFail(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]domain.Answer{
		"unknown":  {Kind: domain.Unknown, Status: 503, Posts: 3},
		"timeout":  {Kind: domain.Unknown, Posts: 1},
		"not sent": {Kind: domain.NotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := payment.NewBreaker()
			require.Equal(t, 10, recorded(b, 100, failure), "a few say nothing yet")
			require.Zero(t, recorded(b, 100, failure), "it has tripped already")
			b.Reset()
			require.Zero(t, recorded(b, 20, domain.Answer{Kind: domain.Captured, Status: 200, Posts: 1}))
			require.Equal(t, 21, recorded(b, 100, failure), "it takes more than half of the recent ones")
		})
	}
}

func TestWhatSaysNothingAboutTheProviderDoesNotTripTheBreaker(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]domain.Answer{
		"a capture":           {Kind: domain.Captured, Status: 200, Posts: 1},
		"a decline":           {Kind: domain.Declined, Status: 402, Posts: 1},
		"a rejection":         {Kind: domain.Rejected, Status: 400, Posts: 1},
		"a key conflict":      {Kind: domain.KeyConflict, Status: 422, Posts: 1},
		"withheld by us":      {Kind: domain.Withheld},
		"a refusal of us":     {Kind: domain.Misconfigured, Status: 401, Posts: 1},
		"too many requests":   {Kind: domain.Unknown, Status: 429, Posts: 1},
		"the key in progress": {Kind: domain.Unknown, Status: 409, Posts: 1},
	} {
		require.Zero(t, recorded(payment.NewBreaker(), 1000, answer), name)
	}
}
