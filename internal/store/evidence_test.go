package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

func TestEvidenceHoldsWhatIsKnownOfEventsAndCoordinates(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	charged, intent, letter, other := aCharge(), aWaiting(), aLetter(), aLetter()
	seen := sightings(3)
	write(t, s, domain.Writes{Charges: []domain.Charge{charged, aCharge()}})
	put(t, s, intent, aWaiting())
	within(t, s, func(tx domain.Tx) error {
		if _, err := tx.Claim(t.Context(), group, seen[:2]); err != nil {
			return err
		}
		if _, err := tx.Claim(t.Context(), "another-group", seen[2:]); err != nil {
			return err
		}
		_, err := tx.Park(t.Context(), []domain.Letter{letter, other})
		return err
	})

	ids := []uuid.UUID{charged.EventID, intent.EventID, seen[0].EventID, seen[2].EventID, uuid.New()}
	found, err := s.Evidence(t.Context(), group, ids, []domain.Coordinates{letter.Record.Coordinates, aRecord().Coordinates})
	require.NoError(t, err)
	require.Equal(t, map[uuid.UUID]domain.Charge{charged.EventID: charged}, found.Charges)
	sighting := found.Sightings[seen[0].EventID]
	seen[0].SeenAt = sighting.SeenAt
	require.Equal(t, map[uuid.UUID]domain.Sighting{seen[0].EventID: seen[0]}, found.Sightings)
	require.Len(t, found.Intents, 1)
	require.Equal(t, intent.Record.Coordinates, found.Intents[intent.EventID].Record.Coordinates)
	require.Empty(t, found.Intents[intent.EventID].Record.Value, "an audit has no use for the bytes")
	require.Len(t, found.Letters, 1)
	require.Equal(t, domain.ReasonJSON, found.Letters[letter.Record.Coordinates].Reason)

	none, err := s.Evidence(t.Context(), group, nil, nil)
	require.NoError(t, err)
	require.Empty(t, none.Letters)
}

func TestPagesOfAnAuditMissNoRowOfOneInstant(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	var charges []domain.Charge
	var intents []domain.Intent
	for i := range 25 {
		charges = append(charges, aCharge(func(c *domain.Charge) { c.SettledAt = epoch.Add(time.Duration(i/10) * time.Second) }))
		intents = append(intents, aWaiting())
	}
	seen := sightings(25) // one transaction: one processed_at
	write(t, s, domain.Writes{Charges: charges})
	put(t, s, intents...)
	within(t, s, func(tx domain.Tx) error {
		_, err := tx.Claim(t.Context(), group, seen)
		return err
	})

	var got [3][]uuid.UUID
	mark := domain.Mark{}
	for {
		page, next, err := s.ChargesAfter(t.Context(), mark, 4)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page), 4)
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			got[0] = append(got[0], c.EventID)
		}
		mark = next
	}
	for mark = (domain.Mark{}); ; {
		page, next, err := s.SightingsAfter(t.Context(), group, mark, 4)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			got[1] = append(got[1], p.EventID)
		}
		mark = next
	}
	for last := uuid.Nil; ; {
		page, err := s.IntentsAfter(t.Context(), last, 4)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, in := range page {
			got[2] = append(got[2], in.EventID)
		}
		last = page[len(page)-1].EventID
	}
	ids := func(n int, of func(int) uuid.UUID) (ids []uuid.UUID) {
		for i := range n {
			ids = append(ids, of(i))
		}
		return ids
	}
	require.ElementsMatch(t, ids(25, func(i int) uuid.UUID { return charges[i].EventID }), got[0])
	require.ElementsMatch(t, ids(25, func(i int) uuid.UUID { return seen[i].EventID }), got[1])
	require.ElementsMatch(t, ids(25, func(i int) uuid.UUID { return intents[i].EventID }), got[2])

	late, _, err := s.ChargesAfter(t.Context(), domain.Mark{At: epoch.Add(1500 * time.Millisecond)}, 100)
	require.NoError(t, err)
	require.Len(t, late, 5)
}

func TestCapturesOfAnOrderAreCountedAndItsHolderTold(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	one, two := aCharge(), aCharge(declined)
	kept := aCharge(func(c *domain.Charge) { c.Status, c.ClaimsOrder = domain.ChargeDiscarded, true })
	write(t, s, domain.Writes{Charges: []domain.Charge{one, two, kept}})
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `DROP INDEX charge_claims_order`)
	again := aCharge(func(c *domain.Charge) { c.OrderID = one.OrderID })
	write(t, s, domain.Writes{Charges: []domain.Charge{again}})

	captures, holders, err := s.CapturesOf(t.Context(), []int64{one.OrderID, two.OrderID, kept.OrderID, 99})
	require.NoError(t, err)
	require.Equal(t, map[int64]int{one.OrderID: 2}, captures)
	require.Len(t, holders, 2)
	require.Equal(t, kept.EventID, holders[kept.OrderID].EventID)
	require.True(t, slices.Contains([]uuid.UUID{one.EventID, again.EventID}, holders[one.OrderID].EventID))
}
