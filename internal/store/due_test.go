package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// due returns the event that is due at an instant, uuid.Nil for none.
func due(t testing.TB, s *store.Store, now time.Time) (id uuid.UUID) {
	t.Helper()
	require.NoError(t, s.Aside(t.Context(), func(tx domain.Tx) error {
		in, err := tx.Due(t.Context(), now)
		if in != nil {
			id = in.EventID
		}
		return err
	}))
	return id
}

func dueAt(at time.Time) func(*domain.Intent) {
	return func(in *domain.Intent) { in.DueAt = at }
}

func TestOnlyClaimedLiveIntentsFallDue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		intent domain.Intent
		due    bool
	}{
		"a waiting one":               {aWaiting(), true},
		"one whose lease has ended":   {aWaiting(inState(domain.Calling)), true},
		"one of unknown outcome":      {aWaiting(inState(domain.UnknownOutcome)), true},
		"an answered one":             {aWaiting(inState(domain.Answered)), true},
		"a parked one never":          {aWaiting(inState(domain.Parked)), false},
		"a held one never":            {aWaiting(inState(domain.Held)), false},
		"an unclaimed one never":      {aWaiting(func(in *domain.Intent) { in.Claimed = false }), false},
		"another group's too":         {aWaiting(func(in *domain.Intent) { in.Group = "another-group" }), true},
		"one of the next microsecond": {aWaiting(dueAt(epoch.Add(time.Microsecond))), false},
		"one of long ago":             {aWaiting(dueAt(epoch.AddDate(-1, 0, 0))), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := storetest.Open(t)
			put(t, s, tc.intent)
			want := uuid.Nil
			if tc.due {
				want = tc.intent.EventID
			}
			require.Equal(t, want, due(t, s, epoch))
		})
	}
}

func TestTheLongestDueIntentComesFirstAndWhole(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	require.Equal(t, uuid.Nil, due(t, s, epoch), "nothing is due in an empty book")
	late := aWaiting(dueAt(epoch.Add(-time.Minute)))
	later := aWaiting(full)
	later.DueAt = epoch.Add(-time.Hour)
	put(t, s, aWaiting(), late, later, aWaiting(dueAt(epoch.Add(-time.Second))))

	require.NoError(t, s.Aside(t.Context(), func(tx domain.Tx) error {
		in, err := tx.Due(t.Context(), epoch)
		later = read(later)
		require.Equal(t, &later, in)
		return err
	}))
}

// Workers of several instances take different intents, and none waits for another.
func TestDuePassesOverWhatOthersHold(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	first, second := aWaiting(dueAt(epoch.Add(-time.Minute))), aWaiting()
	put(t, s, first, second)
	within(t, s, func(tx domain.Tx) error {
		one, err := tx.Due(t.Context(), epoch)
		require.NoError(t, err)
		require.Equal(t, first.EventID, one.EventID)
		return s.Aside(t.Context(), func(other domain.Tx) error {
			two, err := other.Due(t.Context(), epoch)
			require.NoError(t, err)
			require.Equal(t, second.EventID, two.EventID)
			require.Equal(t, uuid.Nil, due(t, s, epoch), "a third worker finds nothing")
			return nil
		})
	})
	require.Equal(t, first.EventID, due(t, s, epoch), "what was put back is due again")
}
