package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

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
		earlier := claimed.Earlier[k.EventID]
		require.WithinDuration(t, time.Now(), earlier.SeenAt, time.Hour, "by the database's clock, on this machine")
		earlier.SeenAt = time.Time{}
		require.Equal(t, k, earlier)
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

// A twin that claims the same event while a first transaction holds it has to
// wait for how that one ends: only then is it known what the twin is.
func TestTwinWaitsForTheFirstClaim(t *testing.T) {
	t.Parallel()
	errLost := errors.New("lost")
	for name, tc := range map[string]struct {
		end   error
		fresh bool
	}{
		"and sees a duplicate once it commits":        {end: nil, fresh: false},
		"and is fresh itself once it was rolled back": {end: errLost, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, databaseURL := storetest.Open(t)
			one := sightings(1)
			claimedFirst, release := make(chan struct{}), make(chan struct{})
			first, second := make(chan error, 1), make(chan error, 1)
			go func() {
				first <- s.Transact(t.Context(), func(tx domain.Tx) error {
					_, err := tx.Claim(t.Context(), group, one)
					close(claimedFirst)
					<-release
					return errors.Join(err, tc.end)
				})
			}()
			<-claimedFirst
			var claimed domain.Claimed
			go func() {
				second <- s.Transact(t.Context(), func(tx domain.Tx) (err error) {
					claimed, err = tx.Claim(t.Context(), group, one)
					return err
				})
			}()

			awaitWaiters(t, storetest.Conn(t, databaseURL), 1)
			require.Empty(t, second, "the twin knows nothing yet")
			close(release)
			require.ErrorIs(t, <-first, tc.end)
			require.NoError(t, <-second)
			_, earlier := claimed.Earlier[one[0].EventID]
			require.Equal(t, tc.fresh, !earlier)
		})
	}
}

func TestUnclaimTakesBackOnlyTheGroupsOwnRows(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	three := sightings(3)
	claim(t, s, three[2:])
	within(t, s, func(tx domain.Tx) error {
		_, err := tx.Claim(t.Context(), "another-group", three[:1])
		return err
	})
	within(t, s, func(tx domain.Tx) error {
		if _, err := tx.Claim(t.Context(), group, three[:2]); err != nil {
			return err
		}
		return tx.Unclaim(t.Context(), group, []uuid.UUID{three[0].EventID})
	})

	claimed := claim(t, s, three)
	require.NotContains(t, claimed.Earlier, three[0].EventID, "it is fresh again")
	require.Contains(t, claimed.Earlier, three[1].EventID)
	require.Contains(t, claimed.Earlier, three[2].EventID)
	within(t, s, func(tx domain.Tx) error {
		other, err := tx.Claim(t.Context(), "another-group", three[:1])
		require.Contains(t, other.Earlier, three[0].EventID)
		return err
	})
}
