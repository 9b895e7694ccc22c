package app_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/payment/paymenttest"
)

// Where the database keeps the positions, what the group has lost in Kafka keeps
// nothing that was read long ago; where Kafka does, everything is to be read anew.
func TestWhatIsReadIsToldByWhereTheGroupGoesOn(t *testing.T) {
	t.Parallel()
	w := setupIn(t, "postgres", 2, paymenttest.Faults{})
	w.orders(30, 2)
	s := w.start(nil)
	w.settled()
	s.Stop()
	w.deserted()
	deleted, err := w.admin.DeleteGroups(t.Context(), w.group)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())

	turn := func(offsets string) (r admin.RetentionTurn) {
		code, out, errs := command(t, w.environ("OFFSET_STORE="+offsets, "RETENTION_MODE=delete", "RETRY_HORIZON=1s", "DEDUP_RETENTION=2s"),
			"retention", "run", "--json", "--shorten")
		require.Zero(t, code, errs)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	w.eventually("it is all due, and still to be read", func() bool {
		r := turn("kafka")
		require.Zero(t, r.Deleted)
		return r.BlockedSince != nil
	})
	w.eventually("it is all read", func() bool { turn("postgres"); return w.count(`SELECT count(*) FROM processed_event`) == 0 })
}
