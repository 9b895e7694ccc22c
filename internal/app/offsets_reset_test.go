package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"example.com/billing/internal/payment/paymenttest"
)

// What is skipped is never charged, so that it takes more than a slip: by a word, an offset or a
// time, with positions in either store, and before the group has any.
func TestAResetGoesPastUnreadRecordsOnlyWhenAskedTo(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		w := setupIn(t, offsets, 2, paymenttest.Faults{})
		w.orders(20, 2)
		s := w.start(nil)
		w.settled()
		s.Stop()
		w.deserted()
		w.produce(w.record(1, []byte(newOrder(21).json())), w.record(1, []byte(newOrder(22).json())))
		before := w.show()
		reset := func(args ...string) (code int, out, errs string) {
			return command(t, w.offsetsEnviron(), append([]string{"offsets", "reset"}, args...)...)
		}
		inAnHour := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		refused := "it goes past unread records, which would never be charged: 2 of " + w.topic + "/1; add --skip-unread if that is meant"
		for _, to := range []string{"latest", inAnHour} {
			code, out, errs := reset("--to", to, "--yes")
			require.Equal(t, 1, code, to)
			require.Empty(t, out)
			require.Contains(t, errs, refused)
			require.Equal(t, before, w.show(), "nothing was changed")
		}
		code, out, errs := reset("--to", "latest", "--dry-run")
		require.Zero(t, code, errs)
		require.Equal(t, fmt.Sprintf("would reset %[1]s/0 from 10 to 10\nwould reset %[1]s/1 from 10 to 12, past 2 unread records\n"+
			"it would be refused now: %[2]s\n", w.topic, refused), out)
		code, _, errs = reset("--to", "11", "--partition", "1", "--yes")
		require.Equal(t, 1, code)
		require.Contains(t, errs, "1 of "+w.topic+"/1")

		code, out, errs = reset("--to", "latest", "--yes", "--skip-unread")
		require.Zero(t, code, errs)
		require.Contains(t, out, w.topic+"/1 from 10 to 12, past 2 unread records\n")
		require.Zero(t, w.show().Partitions[1].Lag)
		w.start(nil)
		w.settled()
		require.EqualValues(t, 20, w.provider.Ledger().Posts, "what was skipped is not charged")

		w.group += "-new" // which has read nothing yet
		code, _, errs = reset("--to", "3", "--yes")
		require.Equal(t, 1, code)
		require.Contains(t, errs, fmt.Sprintf("3 of %[1]s/0, 3 of %[1]s/1", w.topic))
	})
}

// The topic was deleted and created again, say: the group goes on at the first record then, so that all of
// them are unread.
func TestARecordBehindAPositionOutsideOfTheLogIsUnread(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		w := setupIn(t, offsets, 1, paymenttest.Faults{})
		w.orders(5, 1)
		s := w.start(nil)
		w.settled()
		s.Stop()
		w.deserted()
		var beyond kadm.Offsets
		beyond.AddOffset(w.topic, 0, 9, -1)
		require.NoError(t, w.admin.CommitAllOffsets(t.Context(), w.group, beyond))
		_, err := w.db.Exec(t.Context(), `UPDATE consumer_offset SET "offset" = 9`)
		require.NoError(t, err)

		at := w.show().Partitions[0]
		require.True(t, at.Lost)
		require.EqualValues(t, 5, at.Lag)
		code, out, errs := command(t, w.offsetsEnviron(), "offsets", "show")
		require.Zero(t, code, errs)
		require.Contains(t, out, w.topic+"/0: the position lies outside of the log, which holds 0 to 5: the group goes on at 0\n")
		for to, unread := range map[string]string{"latest": "5", "2": "2"} {
			code, _, errs := command(t, w.offsetsEnviron(), "offsets", "reset", "--to", to, "--yes")
			require.Equal(t, 1, code)
			require.Contains(t, errs, unread+" of "+w.topic+"/0; add --skip-unread")
		}
		code, out, errs = command(t, w.offsetsEnviron(), "offsets", "reset", "--to", "earliest", "--yes")
		require.Zero(t, code, errs)
		require.Equal(t, "reset "+w.topic+"/0 from 9 to 0\n", out)
		require.False(t, w.show().Partitions[0].Lost)
	})
}
