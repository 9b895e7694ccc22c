package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// A provider that fails as a whole: the backlog stays in Kafka, a probe a second
// goes out, nothing is parked, and all is charged once soon after it is back.
func TestAnOutageOfTheProviderPausesIntakeAndDrainsSoonAfterIt(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAnOutageOfTheProviderPausesIntakeAndDrainsSoonAfterIt)
}

func testAnOutageOfTheProviderPausesIntakeAndDrainsSoonAfterIt(t *testing.T, offsets string) {
	t.Helper()
	for name, faults := range map[string]string{"503": "503=1", "resets": "reset-before=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const orders = 3000
			w := setupIn(t, offsets, 2, mustFaults(t, faults))
			w.orders(orders, 2)
			s := w.start(map[string]string{"BATCH_MAX": "32", "MAX_TRANSACTIONS": "4"})
			w.eventually("paused, with nothing in flight", func() bool {
				return s.get("/readyz", nil) == http.StatusServiceUnavailable && s.provider().Status == "fail" &&
					w.count(`SELECT count(*) FROM charge_intent WHERE state IN ('waiting', 'unknown')`) > 0 &&
					w.count(`SELECT count(*) FROM charge_intent WHERE state = 'calling'`) == 0
			})
			require.Contains(t, s.provider().Reason, "the provider fails, intake is paused: most charges end without a definite answer")

			before, began := w.provider.Ledger().Posts, time.Now()
			w.eventually("four probes", func() bool { return w.provider.Ledger().Posts >= before+4 })
			require.GreaterOrEqual(t, time.Since(began), 2900*time.Millisecond, "one a second, and each a single request")
			require.Positive(t, w.lag(), "the backlog stays in Kafka")
			require.Zero(t, w.count(`SELECT count(*) FROM dead_letter`))
			require.Contains(t, s.Logs.String(), "intake is paused: the provider fails")
			require.Contains(t, s.scrape(), `billing_provider_paused{cause="failing"} 1`)

			require.NoError(t, w.provider.SetFaults(paymenttest.Faults{}))
			ended := time.Now()
			w.settled()
			require.Less(t, time.Since(ended), time.Minute)
			require.EqualValues(t, orders, w.provider.Ledger().CapturedOrders)
			require.Zero(t, w.provider.Ledger().DoubleCharges)
			require.EqualValues(t, orders, s.stats().Captured)
			require.Equal(t, http.StatusOK, s.get("/readyz", nil))
			require.Contains(t, s.scrape(), `billing_provider_paused{cause="failing"} 0`)
			w.requireAttemptsCoverPosts()
		})
	}
}

// Some failures are no outage.
func TestAProviderThatFailsNowAndThenDoesNotPauseIntake(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAProviderThatFailsNowAndThenDoesNotPauseIntake)
}

func testAProviderThatFailsNowAndThenDoesNotPauseIntake(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 2, mustFaults(t, "503=0.4"))
	w.orders(1000, 2)
	// A busy machine is no outage either, and leaves room for the quick attempts.
	s := w.start(map[string]string{"PAYMENT_TIMEOUT": "8s", "CHARGE_BUDGET": "28s", "SHUTDOWN_TIMEOUT": "60s"})
	w.settled()
	require.Contains(t, s.scrape(), `billing_provider_pauses_total{cause="failing"} 0`)
	require.EqualValues(t, 1000, w.provider.Ledger().CapturedOrders)
}

type component struct{ Name, Status, Reason string }

// provider returns what health says of the payment provider.
func (s *service) provider() component {
	s.t.Helper()
	return s.component("provider")
}

func (s *service) component(name string) component {
	s.t.Helper()
	var health struct{ Components []component }
	require.Equal(s.t, http.StatusOK, s.get("/healthz", &health))
	for _, c := range health.Components {
		if c.Name == name {
			return c
		}
	}
	require.Fail(s.t, "no such component", name)
	return component{}
}

// The answers are lost, and the keys are forgotten at once: what may have been
// charged is looked up, and nothing is charged by asking again.
func TestAForgottenKeyIsLookedUp(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAForgottenKeyIsLookedUp)
}

func testAForgottenKeyIsLookedUp(t *testing.T, offsets string) {
	t.Helper()
	const orders = 8 // fewer than say that the provider fails
	w := setupIn(t, offsets, 1, mustFaults(t, "ignore-keys,reset-after=1"))
	w.orders(orders, 1)
	s := w.start(map[string]string{
		"PAYMENT_LOOKUP": "true", "PAYMENT_KEY_TTL": "1ms", "RETRY_HORIZON": "1h",
		// A quick attempt is made only where there is time for a whole one: here there is, on a slow machine too.
		"PAYMENT_TIMEOUT": "5s", "CHARGE_BUDGET": "60s", "SHUTDOWN_TIMEOUT": "120s",
	})
	w.settled()
	require.EqualValues(t, orders, s.stats().Captured)
	require.Zero(t, w.count(`SELECT count(*) FROM dead_letter`))
	require.Contains(t, s.scrape(), `billing_payment_lookups_total{billing_outcome="found"} 8`)
	ledger := w.provider.Ledger()
	require.Equal(t, map[int]int64{3: orders}, ledger.PostsPerKey, "the quick attempts of the first lease, and none later")
}
