package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
)

// The group starts anew at the earliest offset, processed_event is empty, and what
// the topic holds is older than the window: the provider hears of nothing, whether
// the charges are still known or not.
func TestOffsetsResetToTheEarliestChargeNothingAgain(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testOffsetsResetToTheEarliestChargeNothingAgain)
}

func testOffsetsResetToTheEarliestChargeNothingAgain(t *testing.T, offsets string) {
	t.Helper()
	const orders, forgotten = 200, 80
	w := setupIn(t, offsets, 2, paymenttest.Faults{IgnoreKeys: true})
	var records []*kgo.Record
	for n := range int64(orders) {
		r := w.record(int32(n%2), []byte(newOrder(n+1).json()))
		r.Timestamp = time.Now().Add(-200 * time.Hour)
		records = append(records, r)
	}
	w.produce(records...)
	first := w.start(patient(map[string]string{"DEDUP_RETENTION": "300h"}))
	w.settled()
	require.EqualValues(t, orders, w.provider.Ledger().Captures)
	first.Stop()

	_, err := w.db.Exec(t.Context(), `DELETE FROM processed_event`)
	require.NoError(t, err)
	_, err = w.db.Exec(t.Context(), `DELETE FROM charge WHERE order_id <= $1`, forgotten)
	require.NoError(t, err)
	w.group += "-again" // nothing committed: from the earliest
	w.start(map[string]string{"DEDUP_RETENTION": "168h"})
	w.settled()
	require.EqualValues(t, orders, w.provider.Ledger().Posts)
	require.EqualValues(t, forgotten, w.count(`SELECT count(*) FROM dead_letter WHERE reason = 'outside_dedup_window'`))
	require.EqualValues(t, forgotten, w.count(`SELECT count(*) FROM charge_intent WHERE state = 'held' AND claimed`))
	require.EqualValues(t, orders, w.count(`SELECT count(*) FROM processed_event`))
}
