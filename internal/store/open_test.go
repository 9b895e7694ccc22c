package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// opened returns the events whose intents Open says it committed, in the order
// in which they were given.
func opened(t testing.TB, s *store.Store, intents ...domain.Intent) []uuid.UUID {
	t.Helper()
	in, err := s.Open(t.Context(), intents)
	require.NoError(t, err)
	var ids []uuid.UUID
	for i := range intents {
		if in[intents[i].EventID] {
			ids = append(ids, intents[i].EventID)
		}
	}
	require.Len(t, in, len(ids), "nothing else is said")
	return ids
}

func TestOpenCommitsOnlyWhatNothingKeepsOut(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	own := aCalling()
	claims := aCalling()
	waits := aWaiting()
	put(t, s, own, claims, waits)

	again := own
	again.Token = uuid.New()
	fresh, rival, beside := aCalling(), aCalling(ofOrder(claims.OrderID)), aCalling(ofOrder(waits.OrderID))
	require.Equal(t, []uuid.UUID{fresh.EventID, beside.EventID}, opened(t, s, again, rival, fresh, beside))

	now := locked(t, s, fresh.EventID, beside.EventID, own.EventID, rival.EventID)
	require.Len(t, now, 3)
	require.Equal(t, own.Token, now[own.EventID].Token, "the intent that was there is untouched")
	require.Equal(t, fresh.Token, now[fresh.EventID].Token)
	require.Empty(t, opened(t, s, again, rival))
	require.Empty(t, opened(t, s))
}

func TestOpenLetsTheFirstEventOfAnOrderIn(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	one, two := aCalling(ofOrder(11)), aCalling(ofOrder(11)) // version 7: one < two
	require.Equal(t, []uuid.UUID{one.EventID}, opened(t, s, two, one))
}

func TestOpenInsertsByOrderAndEventAndLeavesTheCallersSliceAlone(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	var intents []domain.Intent
	for _, order := range []int64{9, 3, 7, 3, 1, 7, 5} {
		intents = append(intents, aWaiting(ofOrder(order)))
	}
	given := slices.Clone(intents)
	require.Len(t, opened(t, s, intents...), len(intents))
	require.Equal(t, given, intents)

	slices.SortFunc(given, inLockOrder)
	rows, err := storetest.Conn(t, databaseURL).Query(t.Context(), `SELECT event_id FROM charge_intent ORDER BY ctid`)
	require.NoError(t, err)
	var i int
	for ; rows.Next(); i++ {
		var id uuid.UUID
		require.NoError(t, rows.Scan(&id))
		require.Equal(t, given[i].EventID, id)
	}
	require.NoError(t, rows.Err())
	require.Equal(t, len(given), i)
}

func TestOpenTellsManyIntentsApart(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	intents := make([]domain.Intent, 1100)
	var want []uuid.UUID
	for i := range intents {
		intents[i] = aCalling()
		if i%5 < 2 {
			put(t, s, aCalling(ofOrder(intents[i].OrderID)))
			continue
		}
		want = append(want, intents[i].EventID)
	}
	require.Equal(t, want, opened(t, s, intents...))
}

// Somebody holds one order for longer than the side pool waits: an uncommitted
// claim on it. The others of the batch must go in all the same.
func TestOpenKeepsOutOnlyTheIntentThatMeetsALongLock(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	busy := aCalling()
	hold, held := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.Transact(t.Context(), func(tx domain.Tx) error {
			err := tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{busy}})
			close(held)
			<-hold
			return err
		})
	}()
	<-held

	low, rival, high := aCalling(ofOrder(1)), aCalling(ofOrder(busy.OrderID)), aCalling(ofOrder(1<<62))
	require.Equal(t, []uuid.UUID{low.EventID, high.EventID}, opened(t, s, low, rival, high))
	require.Empty(t, opened(t, s, rival), "alone it is kept out as well, without an error")
	close(hold)
	require.NoError(t, <-done)

	conn := storetest.Conn(t, databaseURL)
	require.Equal(t, 3, value[int](t, conn, `SELECT count(*) FROM charge_intent`), "what timed out never goes in late")
	require.Empty(t, locked(t, s, rival.EventID))
}

func TestOpenReportsWhatIsNotAnOutcome(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	bad := aCalling(func(in *domain.Intent) { in.Owner = "a\x00b" })
	_, err := s.Open(t.Context(), []domain.Intent{aCalling(), bad})
	require.ErrorIs(t, err, domain.ErrData)

	impossible := aCalling(func(in *domain.Intent) { in.Attempts = -1 })
	_, err = s.Open(t.Context(), []domain.Intent{aCalling(), impossible})
	require.Equal(t, "23514", stateOf(err))
	require.NotErrorIs(t, err, domain.ErrData)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Open(ctx, []domain.Intent{aCalling()})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM charge_intent`))
}
