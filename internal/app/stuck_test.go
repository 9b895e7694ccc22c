package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// A table that refuses every row, as after a restore that was broken off: everything answers,
// and nothing gets on.
func TestBatchesThatFailAgainAndAgainAreToldAndGoneOnWithOnceTheyCan(t *testing.T) {
	t.Parallel()
	w := setup(t, 2, paymenttest.Faults{IgnoreKeys: true})
	one := w.start(nil)
	w.eventually("the first turn of retention", func() bool { return !w.retained().FinishedAt.IsZero() })
	_, err := w.db.Exec(t.Context(), `ALTER TABLE processed_event ADD CONSTRAINT broken CHECK (consumer_group = '') NOT VALID`)
	require.NoError(t, err)
	for n := range int64(20) {
		w.produce(w.record(1, []byte(newOrder(n+1).json())))
	}
	w.eventually("health warns", func() bool {
		found := one.component("kafka")
		return found.Status == "warn" && strings.Contains(found.Reason, "again and again in partitions 1:")
	})
	require.Zero(t, w.provider.Ledger().Posts, "without a claim nothing is sent")
	_, err = w.db.Exec(t.Context(), `ALTER TABLE processed_event DROP CONSTRAINT broken`)
	require.NoError(t, err)
	w.settled()
	require.EqualValues(t, 20, w.provider.Ledger().Posts)
	w.eventually("it is well again", func() bool { return one.component("kafka").Status == "ok" })
}
