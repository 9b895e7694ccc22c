package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// inTransaction moves a position as a batch does.
func inTransaction(t *testing.T, book domain.Book, at domain.Position) error {
	t.Helper()
	return book.Transact(t.Context(), func(tx domain.Tx) error { return tx.Move(t.Context(), at) })
}

func to(at domain.Position, next int64, leader int32) domain.Position {
	at.Next, at.LeaderEpoch = next, leader
	return at
}

func TestAPartitionIsTakenWithItsPositionAndAFreshEpoch(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	book := s.Offsets("one")
	first, err := book.Take(t.Context(), "g", "t", 3)
	require.NoError(t, err)
	require.Equal(t, domain.Position{
		Group: "g", Topic: "t", Partition: 3, Next: domain.NoOffset, LeaderEpoch: domain.NoLeaderEpoch, Epoch: 1,
	}, first)
	require.NoError(t, inTransaction(t, s, to(first, 42, 7)))
	second, err := s.Offsets("two").Take(t.Context(), "g", "t", 3)
	require.NoError(t, err)
	require.Equal(t, domain.Position{Group: "g", Topic: "t", Partition: 3, Next: 42, LeaderEpoch: 7, Epoch: 2}, second)
	for _, other := range []domain.Position{{Group: "h", Topic: "t", Partition: 3}, {Group: "g", Topic: "u", Partition: 3}, {Group: "g", Topic: "t"}} {
		got, err := book.Take(t.Context(), other.Group, other.Topic, other.Partition)
		require.NoError(t, err)
		require.Equal(t, domain.NoOffset, got.Next, "a partition of its own: %+v", other)
	}
}

func TestAPositionGoesForwardOnlyUnlessTheLogWentBack(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	book := s.Offsets("one")
	at, err := book.Take(t.Context(), "g", "t", 0)
	require.NoError(t, err)
	stands := func(next int64, leader int32) {
		t.Helper()
		list, err := book.List(t.Context(), "g", "t")
		require.NoError(t, err)
		require.Equal(t, []domain.Position{to(at, next, leader)}, list)
	}
	require.NoError(t, inTransaction(t, s, to(at, domain.NoOffset, domain.NoLeaderEpoch)), "nothing to move, and not fenced")
	stands(domain.NoOffset, domain.NoLeaderEpoch)
	require.NoError(t, inTransaction(t, s, to(at, 10, 2)))
	stands(10, 2)
	require.NoError(t, inTransaction(t, s, to(at, 7, 1)))
	stands(10, 2)
	require.NoError(t, inTransaction(t, s, to(at, domain.NoOffset, domain.NoLeaderEpoch)))
	stands(10, 2)
	require.NoError(t, book.Move(t.Context(), to(at, 12, domain.NoLeaderEpoch)))
	stands(12, domain.NoLeaderEpoch)
	require.NoError(t, book.Rewind(t.Context(), to(at, 3, domain.NoLeaderEpoch)))
	stands(3, domain.NoLeaderEpoch)
}

func TestWritesOfAnEarlierEpochAreFenced(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	book := s.Offsets("one")
	old, err := book.Take(t.Context(), "g", "t", 0)
	require.NoError(t, err)
	require.NoError(t, book.Move(t.Context(), to(old, 5, 0)))
	_, err = book.Take(t.Context(), "g", "t", 0)
	require.NoError(t, err)
	for what, write := range map[string]func() error{
		"a batch":              func() error { return inTransaction(t, s, to(old, 9, 0)) },
		"a batch without move": func() error { return inTransaction(t, s, to(old, domain.NoOffset, 0)) },
		"a write aside":        func() error { return book.Move(t.Context(), to(old, 9, 0)) },
		"going back":           func() error { return book.Rewind(t.Context(), to(old, 1, 0)) },
	} {
		require.ErrorIs(t, write(), domain.ErrFenced, what)
	}
	list, err := book.List(t.Context(), "g", "t")
	require.NoError(t, err)
	require.EqualValues(t, 5, list[0].Next)
}

func TestAResetSetsAllPositionsAndFencesWhoeverHasThem(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	book := s.Offsets("one")
	at, err := book.Take(t.Context(), "g", "t", 0)
	require.NoError(t, err)
	require.NoError(t, book.Move(t.Context(), to(at, 50, 3)))
	require.NoError(t, book.Reset(t.Context(), "g", "t", map[int32]int64{0: 20, 1: 0}))
	list, err := book.List(t.Context(), "g", "t")
	require.NoError(t, err)
	require.Equal(t, []domain.Position{
		{Group: "g", Topic: "t", Partition: 0, Next: 20, LeaderEpoch: domain.NoLeaderEpoch, Epoch: 2},
		{Group: "g", Topic: "t", Partition: 1, Next: 0, LeaderEpoch: domain.NoLeaderEpoch, Epoch: 1},
	}, list)
	require.ErrorIs(t, book.Move(t.Context(), to(at, 60, 3)), domain.ErrFenced)

	require.Error(t, book.Reset(t.Context(), "g", "t", map[int32]int64{0: 30, 1: -1}))
	after, err := book.List(t.Context(), "g", "t")
	require.NoError(t, err)
	require.Equal(t, list, after, "all or none")
}

// Whoever takes the partition waits for a write that is being committed, and sees it; one
// that comes later is fenced. Nothing is in between.
func TestTakingAPartitionAndWritingItsPositionNeverBothCount(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	book := s.Offsets("one")
	for range 40 {
		at, err := book.Take(t.Context(), "g", "t", 0)
		require.NoError(t, err)
		next := max(at.Next, 0) + 1
		var moved, taking error
		var taken domain.Position
		var both sync.WaitGroup
		gate := make(chan struct{})
		both.Go(func() { <-gate; moved = inTransaction(t, s, to(at, next, 0)) })
		both.Go(func() { <-gate; taken, taking = book.Take(t.Context(), "g", "t", 0) })
		close(gate)
		both.Wait()
		require.NoError(t, taking)
		if errors.Is(moved, domain.ErrFenced) {
			require.Equal(t, at.Next, taken.Next)
		} else {
			require.NoError(t, moved)
			require.Equal(t, next, taken.Next)
		}
	}
}
