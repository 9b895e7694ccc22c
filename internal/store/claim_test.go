package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const group = "billing-test"

func sightings(n int) []domain.Sighting {
	s := make([]domain.Sighting, n)
	for i := range s {
		id := uuid.Must(uuid.NewV7())
		s[i] = domain.Sighting{
			EventID:     id,
			Source:      domain.Coordinates{Topic: "orders.confirmed", Partition: 3, Offset: int64(i)},
			Fingerprint: sha256.Sum256(id[:]),
		}
	}
	slices.SortFunc(s, func(a, b domain.Sighting) int { return bytes.Compare(a.EventID[:], b.EventID[:]) })
	return s
}

// The claim rests on how GORM reads inserted rows back; an upgrade that changes
// that must fail here.
func TestClaimTellsExactlyTheFreshEventsOfABatch(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	all := sightings(1200)
	var known []domain.Sighting
	for i := range all {
		if i%5 < 2 {
			known = append(known, all[i])
		}
	}
	claim(t, s, known)

	claimed := claim(t, s, all)
	require.Len(t, claimed.Earlier, len(known))
	for _, k := range known {
		require.Equal(t, k, claimed.Earlier[k.EventID])
	}
	require.Len(t, claim(t, s, all).Earlier, len(all), "a second claim finds nothing fresh")
	require.Empty(t, claim(t, s, nil).Earlier)
}

func TestClaimIsPerConsumerGroup(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	one := sightings(1)
	claim(t, s, one)
	err := s.Transact(t.Context(), func(tx domain.Tx) error {
		claimed, err := tx.Claim(t.Context(), "another-group", one)
		require.Empty(t, claimed.Earlier)
		return err
	})
	require.NoError(t, err)
}

func claim(t *testing.T, book domain.Book, s []domain.Sighting) (claimed domain.Claimed) {
	t.Helper()
	err := book.Transact(t.Context(), func(tx domain.Tx) (err error) {
		claimed, err = tx.Claim(t.Context(), group, s)
		return err
	})
	require.NoError(t, err)
	return claimed
}

func TestTwinWaitsForTheFirstClaimAndSeesADuplicate(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	one := sightings(1)
	claimedFirst, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	go func() {
		done <- s.Transact(context.WithoutCancel(t.Context()), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, one)
			close(claimedFirst)
			<-release
			return err
		})
	}()
	<-claimedFirst
	var second domain.Claimed
	go func() {
		done <- s.Transact(context.WithoutCancel(t.Context()), func(tx domain.Tx) (err error) {
			second, err = tx.Claim(t.Context(), group, one)
			return err
		})
	}()
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Contains(t, second.Earlier, one[0].EventID)
}
