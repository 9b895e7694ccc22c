package payment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/payment/paymenttest"
)

// BenchmarkCharge measures client and provider together, on one machine.
func BenchmarkCharge(b *testing.B) {
	provider := newProvider(b, "", paymenttest.Options{})
	client := newClient(b, payment.Config{URL: provider.URL()})
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if answer := client.Charge(b.Context(), newRequest(b, 1)); answer.Kind != domain.Captured {
				b.Errorf("answer: %s", answer.Detail)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
	require.EqualValues(b, b.N, provider.Ledger().Posts)
}
