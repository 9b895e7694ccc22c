package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

func TestFollowersAreWhoeverCountedOrKeepsAPosition(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	nobody, err := s.Followers(t.Context())
	require.NoError(t, err)
	require.Empty(t, nobody)

	old, young, other := at(0, 0), at(1, 0), at(0, 0)
	old.Topic, other.Group = "orders.old", "another-group"
	young.Minute = time.Now().UTC().Truncate(time.Minute)
	count(t, s, domain.Stats{old: {Received: 1}, young: {Received: 1}, other: {Received: 1}})
	book := s.Offsets("billing-1")
	require.NoError(t, book.Reset(t.Context(), group, "orders.confirmed", map[int32]int64{0: 7, 2: 9}))
	require.NoError(t, book.Reset(t.Context(), "third-group", "orders.new", map[int32]int64{1: 0}))
	_, err = book.Take(t.Context(), group, "orders.confirmed", 5) // nothing was durable yet
	require.NoError(t, err)

	want := []store.Follower{
		{Group: "another-group", Topic: "orders.confirmed"},
		{Group: group, Topic: "orders.confirmed", Kept: map[int32]int64{0: 7, 2: 9}},
		{Group: group, Topic: "orders.old"},
		{Group: "third-group", Topic: "orders.new", Kept: map[int32]int64{1: 0}},
	}
	for range 2 {
		followers, err := s.Followers(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, followers)
		chore(t, s, "statistics", time.Now()) // and after they were rolled up
	}
}
