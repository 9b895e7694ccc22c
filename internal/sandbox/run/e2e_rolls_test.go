package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/run"
)

func TestInstancesThatJoinAndLeaveUnderLoadCostNoSecondRequest(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("latency=20ms,ignore-keys")
	require.NoError(t, err)
	s := &screen{}
	o := options(t, func(o *run.Options) {
		o.Instances, o.Joins, o.Source.Records, o.Faults = 3, 4, 4000, faults
	})
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.Empty(t, failed(r), s)
	require.Equal(t, int64(3200), r.Posts)
	require.Equal(t, int64(3200), r.Captured)
	require.Len(t, r.Rolls, 4)
	leaves, joins := 0, 0
	for _, roll := range r.Rolls {
		require.True(t, roll.Settled, s)
		require.GreaterOrEqual(t, roll.Members, 1)
		require.LessOrEqual(t, roll.Members, 3)
		if roll.Left > 0 {
			leaves++
			require.Positive(t, roll.LeftInFlight, s)
		}
		if roll.Joined > 0 {
			joins++
		}
	}
	require.Positive(t, leaves, "all three run at first")
	require.Positive(t, joins, "one at least stays")
	requireTidy(t, s)
}

func TestInstancesThatJoinAndLeaveBesideKillsChargeEachOrderOnce(t *testing.T) {
	t.Parallel()
	s := &screen{}
	o := options(t, func(o *run.Options) {
		o.Instances, o.Joins, o.Kills, o.Source.Records = 3, 3, 2, 4000
		o.Source.Conflicts, o.Source.Invalid = 0.01, 0.005
	})
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.Empty(t, failed(r), s)
	require.Len(t, r.Kills, 2)
	require.Len(t, r.Rolls, 3)
	require.Zero(t, r.DoubleCharges)
	require.Zero(t, r.UnexplainedPosts)
	require.Equal(t, int64(40), r.Duplicates.Conflicting, "as many as were sent")
	require.Equal(t, int64(20), r.Invalid)
	require.Equal(t, int64(3140), r.Captured)
	require.GreaterOrEqual(t, r.Duplicates.Redelivered+r.Duplicates.Republished, int64(800))
	requireTidy(t, s)
}

func TestInstancesThatJoinAndLeaveWhileABacklogIsWorkedOffCostNoSecondRequest(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("latency=100ms,ignore-keys")
	require.NoError(t, err)
	s := &screen{}
	o := options(t, func(o *run.Options) {
		o.Instances, o.Joins, o.Backlog, o.Source.Records, o.Faults = 2, 2, true, 20_000, faults
		o.Env = append(o.Env, "MAX_IN_FLIGHT=64") // 640 charges a second of each: it lasts
	})
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	// A rebalance takes as long as the machine is busy: the backlog of a partition may end before the last one does.
	require.Empty(t, slices.DeleteFunc(failed(r), func(line string) bool { return strings.HasPrefix(line, "turns with a backlog") }), s)
	require.Equal(t, int64(16_000), r.Posts)
	require.Len(t, r.Rolls, 2)
	require.True(t, slices.ContainsFunc(r.Rolls, func(roll run.Roll) bool { return roll.Waiting > 0 }), s)
	requireTidy(t, s)
}
