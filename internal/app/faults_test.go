package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
)

func mustFaults(t *testing.T, text string) paymenttest.Faults {
	t.Helper()
	f, err := paymenttest.ParseFaults(text)
	require.NoError(t, err)
	return f
}

// orders writes n orders over the partitions.
func (w *world) orders(n int64, partitions int32) {
	w.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range n {
		records[i] = w.record(int32(i)%partitions, []byte(newOrder(i+1).json()))
	}
	w.produce(records...)
}

func TestAFailingProviderLosesNothingAndChargesNothingTwice(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		for name, faults := range map[string]string{
			"resets after the charge":         "reset-after=0.2",
			"hangs after the charge":          "hang=next20",
			"answers with an id of 10 MB":     "huge-id=next5",
			"answers with a NUL in the id":    "nul-id=next50",
			"cuts the body":                   "cut=0.2",
			"fails after the charge":          "500-after=0.2",
			"fails before the charge":         "503-before=0.3",
			"refuses by rate with a pause":    "429=next30:1",
			"says that the key is in use":     "409=next30",
			"answers with something not JSON": "not-json=0.5",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				const orders = 200
				w := setupIn(t, offsets, 3, mustFaults(t, faults))
				w.orders(orders, 3)
				s := w.start(nil)
				w.settled()

				ledger := w.provider.Ledger()
				require.EqualValues(t, orders, ledger.CapturedOrders)
				require.Zero(t, ledger.DoubleCharges)
				require.NotEmpty(t, ledger.Faults, "the faults were played")
				require.EqualValues(t, orders, s.stats().Captured)
				require.EqualValues(t, orders, w.count(`SELECT count(*) FROM charge WHERE status = 'captured'`))
				require.Zero(t, w.count(`SELECT count(*) FROM dead_letter`))
				w.requireAttemptsCoverPosts()
			})
		}
	})
}

// requireAttemptsCoverPosts holds the recorded attempts against the ledger.
func (w *world) requireAttemptsCoverPosts() {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT event_id::text, attempts FROM charge`)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var key string
		var attempts int
		require.NoError(w.t, rows.Scan(&key, &attempts))
		c, ok := w.provider.Charge(key)
		require.True(w.t, ok, key)
		require.GreaterOrEqual(w.t, attempts, c.Posts, key)
	}
	require.NoError(w.t, rows.Err())
}

func TestDeclinesAndRejectionsAreOutcomesOfTheirOwn(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testDeclinesAndRejectionsAreOutcomesOfTheirOwn)
}

func testDeclinesAndRejectionsAreOutcomesOfTheirOwn(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 1, mustFaults(t, "402=1:insufficient_funds@order:3+4,400=1@order:5,422=1@order:6"))
	w.orders(10, 1)
	s := w.start(nil)
	w.eventually("all settled or parked", func() bool { return w.lag() == 0 && w.count(`SELECT count(*) FROM charge`) == 8 })
	n := s.stats()
	require.EqualValues(t, 6, n.Captured)
	require.EqualValues(t, 2, n.Declined)
	require.EqualValues(t, 2, n.Parked)
	require.EqualValues(t, 2, w.count(`SELECT count(*) FROM charge WHERE decline_code = 'insufficient_funds'`))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM dead_letter WHERE reason = 'provider_rejected' AND order_id = 5 AND value IS NOT NULL`))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM dead_letter WHERE reason = 'idempotency_conflict' AND order_id = 6`))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM charge_intent WHERE state = 'held' AND order_id = 5`))
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM charge_intent WHERE state = 'parked' AND order_id = 6`))
}

func TestAMisconfigurationPausesIntakeAndParksNothing(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAMisconfigurationPausesIntakeAndParksNothing)
}

func testAMisconfigurationPausesIntakeAndParksNothing(t *testing.T, offsets string) {
	t.Helper()
	const orders = 300
	w := setupIn(t, offsets, 2, mustFaults(t, "401=1"))
	w.orders(orders, 2)
	s := w.start(nil)
	w.eventually("paused, with the first batches put back", func() bool {
		return s.get("/readyz", nil) == http.StatusServiceUnavailable &&
			w.count(`SELECT count(*) FROM charge_intent WHERE state = 'waiting'`) > 0 &&
			w.count(`SELECT count(*) FROM charge_intent WHERE state = 'calling'`) == 0
	})
	// Once paused, at most a probe a second goes out.
	before, began := w.provider.Ledger().Posts, time.Now()
	w.eventually("three probes", func() bool { return w.provider.Ledger().Posts >= before+3 })
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	require.Zero(t, w.count(`SELECT count(*) FROM dead_letter`))
	require.Zero(t, w.count(`SELECT coalesce(sum(attempts), 0) FROM charge_intent WHERE state = 'waiting'`), "not an attempt")
	require.Contains(t, s.Logs.String(), "the provider refuses us")

	require.NoError(t, w.provider.SetFaults(paymenttest.Faults{}))
	w.settled()
	require.EqualValues(t, orders, w.provider.Ledger().CapturedOrders)
	require.Zero(t, w.provider.Ledger().DoubleCharges)
	require.EqualValues(t, orders, s.stats().Captured)
	require.Equal(t, http.StatusOK, s.get("/readyz", nil))
}

func TestTwoEventsOfOneOrderAreOneCapture(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		w := setupIn(t, offsets, 2, mustFaults(t, "latency=uniform:5ms:50ms"))
		var records []*kgo.Record
		for n := range int64(100) {
			a, b := newOrder(n+1), newOrder(n+1)
			other := int32(1) // in two partitions at once
			if n%2 == 0 {
				other = 0 // in one batch
			}
			records = append(records, w.record(0, []byte(a.json())), w.record(other, []byte(b.json())))
		}
		w.produce(records...)
		s, _ := w.start(nil), w.start(nil)
		w.settled()
		ledger := w.provider.Ledger()
		require.EqualValues(t, 100, ledger.Captures)
		require.Zero(t, ledger.DoubleCharges)
		n := s.stats()
		require.EqualValues(t, 100, n.Captured)
		require.EqualValues(t, 100, n.DuplicateOrder)
	})
}
