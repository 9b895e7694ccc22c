package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPauseIsAsLongAsWhatWentBeforeLessUpToAQuarter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ elapsed, full time.Duration }{
		"at least the least": {0, time.Second},
		"before the start":   {-time.Hour, time.Second},
		"as long again":      {40 * time.Second, 40 * time.Second},
		"at most the most":   {time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shortest, longest := time.Hour, time.Duration(0)
			for range 2000 {
				d := pause(tc.elapsed, time.Second, time.Minute)
				shortest, longest = min(shortest, d), max(longest, d)
			}
			require.GreaterOrEqual(t, shortest, tc.full*3/4)
			require.LessOrEqual(t, longest, tc.full)
			require.Greater(t, longest-shortest, tc.full/5, "what failed together does not come back together")
		})
	}
	require.NotPanics(t, func() { pause(0, 0, 0) })
}

func TestTheRetryHorizonRunsFromTheFirstAttemptOrTheClaim(t *testing.T) {
	t.Parallel()
	h := bounds.RetryHorizon
	for name, tc := range map[string]struct {
		created, first time.Time
		expired        bool
	}{
		"reached to the instant":                   {noon.Add(-h), noon.Add(-h), true},
		"not yet":                                  {noon.Add(-h), noon.Add(-h + 1), false},
		"never sent, from the claim":               {noon.Add(-h), time.Time{}, true},
		"never sent, not yet":                      {noon.Add(-h + 1), time.Time{}, false},
		"waited for long before the first attempt": {noon.Add(-2 * h), noon, false},
	} {
		in := Intent{CreatedAt: tc.created, FirstAttemptAt: tc.first}
		require.Equal(t, tc.expired, bounds.expired(&in, noon), name)
	}
}

func TestAKeyIsTooOldWhenALeaseTakenNowCouldOutliveIt(t *testing.T) {
	t.Parallel()
	newest := noon.Add(bounds.Lease - bounds.KeyTTL) // the lease would end as the key is forgotten
	for name, tc := range map[string]struct {
		maybeSent bool
		first     time.Time
		tooOld    bool
	}{
		"forgotten before the lease ends":  {true, newest.Add(-1), true},
		"forgotten as the lease ends":      {true, newest, true},
		"remembered to the end":            {true, newest.Add(1), false},
		"nothing was sent under it anyway": {false, newest.Add(-time.Hour), false},
	} {
		in := Intent{MaybeSent: tc.maybeSent, FirstAttemptAt: tc.first}
		require.Equal(t, tc.tooOld, bounds.keyTooOld(&in, noon), name)
	}
}

func TestSendingEndsBeforeTheLeaseLeavesNoTimeToRecord(t *testing.T) {
	t.Parallel()
	p := Policy{ChargeBudget: 12 * time.Second, CommitMargin: 3 * time.Second}
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: 12 * time.Second, 15 * time.Second: 12 * time.Second, 10 * time.Second: 7 * time.Second,
		3 * time.Second: 0, -time.Second: -4 * time.Second,
	} {
		require.Equal(t, want, p.budget(&Intent{LeaseUntil: noon.Add(left)}, noon), left)
	}
}

func TestATransactionIsBoundedByAllThatItMayWaitFor(t *testing.T) {
	t.Parallel()
	p := Policy{LockTimeout: 15 * time.Second, ChargeBudget: 12 * time.Second, CommitMargin: 3 * time.Second}
	require.Equal(t, 30*time.Second, p.transactionBound())
}
