package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// aDuplicate returns a line of the log: of an event of its own, republished.
func aDuplicate(with ...func(*domain.Duplicate)) domain.Duplicate {
	d := domain.Duplicate{
		Group: group, EventID: uuid.Must(uuid.NewV7()), Kind: domain.DuplicateRepublished, Record: aRecord().Coordinates,
		SeenAt: epoch, First: aRecord().Coordinates, FirstSeenAt: epoch.Add(-time.Hour),
	}
	for _, change := range with {
		change(&d)
	}
	return d
}

func repeating(id uuid.UUID) func(*domain.Duplicate) {
	return func(d *domain.Duplicate) { d.EventID = id }
}

// logged commits lines of the log.
func logged(t testing.TB, s *store.Store, lines ...domain.Duplicate) {
	t.Helper()
	within(t, s, func(tx domain.Tx) error { return tx.Log(t.Context(), lines) })
}

func TestDuplicatesArePagedNewestFirstAndFiltered(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	event := uuid.New()
	var all []domain.Duplicate
	for i := range 24 {
		d := aDuplicate(func(d *domain.Duplicate) { d.Kind = domain.DuplicateKinds()[i%3] })
		if i%4 == 0 {
			d.EventID = event
		}
		if i%5 == 0 {
			d.First, d.FirstSeenAt = domain.Coordinates{}, time.Time{}
		}
		all = append(all, d)
	}
	logged(t, s, all...)
	logged(t, s, aDuplicate(func(d *domain.Duplicate) { d.Group = "another-group" }))
	slices.Reverse(all)
	for name, tc := range map[string]struct {
		filter domain.DuplicateFilter
		keep   func(domain.Duplicate) bool
		pages  int
	}{
		"everything":  {domain.DuplicateFilter{}, func(domain.Duplicate) bool { return true }, 5},
		"of an event": {domain.DuplicateFilter{EventID: event}, func(d domain.Duplicate) bool { return d.EventID == event }, 2},
		"of a kind": {
			domain.DuplicateFilter{Kind: domain.DuplicateConflicting},
			func(d domain.Duplicate) bool { return d.Kind == domain.DuplicateConflicting }, 2,
		},
		"of an event and a kind": {
			domain.DuplicateFilter{EventID: event, Kind: domain.DuplicateRedelivered},
			func(d domain.Duplicate) bool { return d.EventID == event && d.Kind == domain.DuplicateRedelivered }, 1,
		},
		"of an event that nobody repeated": {domain.DuplicateFilter{EventID: uuid.New()}, func(domain.Duplicate) bool { return false }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.filter.Group, tc.filter.Limit = group, 5
			got, pages := allPages(t, func(cursor string) (domain.Page[domain.Duplicate], error) {
				tc.filter.Cursor = cursor
				return s.Duplicates(t.Context(), tc.filter)
			})
			var want []domain.Duplicate
			for _, d := range all {
				if tc.keep(d) {
					want = append(want, d)
				}
			}
			for i := range got {
				require.Positive(t, got[i].ID)
				got[i].ID = 0
			}
			require.Equal(t, want, got)
			require.Equal(t, tc.pages, pages)
		})
	}
}

func TestTheStoryHoldsTheLatestDuplicates(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	seen := sightings(1)
	claim(t, s, seen)
	id := seen[0].EventID
	got, _ := story(t, s, id)
	require.Empty(t, got.Duplicates)
	require.True(t, got.LogBegins.IsZero(), "the log is empty")

	logged(t, s, aDuplicate(func(d *domain.Duplicate) { d.SeenAt = epoch.Add(-time.Minute) }))
	for i := range domain.MaxStoryDuplicates {
		logged(t, s, aDuplicate(repeating(id), func(d *domain.Duplicate) { d.SeenAt = epoch.Add(time.Duration(i) * time.Second) }))
	}
	logged(t, s, aDuplicate(repeating(id), func(d *domain.Duplicate) { d.Group = "another-group" }))
	got, _ = story(t, s, id)
	require.Len(t, got.Duplicates, domain.MaxStoryDuplicates)
	require.Equal(t, epoch, got.Duplicates[domain.MaxStoryDuplicates-1].SeenAt, "newest first")
	require.False(t, got.MoreDuplicates)
	require.Equal(t, epoch.Add(-time.Minute), got.LogBegins)
	require.False(t, got.LogCut)

	logged(t, s, aDuplicate(repeating(id), func(d *domain.Duplicate) { d.SeenAt = epoch.Add(time.Hour) }))
	execute(t, storetest.Conn(t, databaseURL), `DELETE FROM duplicate_log WHERE id = 1`)
	got, _ = story(t, s, id)
	require.Len(t, got.Duplicates, domain.MaxStoryDuplicates)
	require.Equal(t, epoch.Add(time.Hour), got.Duplicates[0].SeenAt)
	require.True(t, got.MoreDuplicates)
	require.Equal(t, epoch, got.LogBegins)
	require.True(t, got.LogCut, "what came before the oldest line is forgotten")
}

func TestALineOfTheLogAloneIsKnowledge(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	d := aDuplicate()
	logged(t, s, d)
	got, known := story(t, s, d.EventID)
	require.True(t, known)
	require.Len(t, got.Duplicates, 1)
	require.Nil(t, got.Sighting)
	_, known = story(t, s, uuid.New())
	require.False(t, known)
}

func TestTheStoryHoldsWhatWasDoneToItsLetters(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	id := uuid.New()
	park(t, s, aLetter(ofEvent(id)), aLetter(ofEvent(uuid.New())))
	for _, l := range letters(t, s, domain.LetterFilter{}) {
		turned := l
		turned.State = domain.LetterReplayed
		within(t, s, func(tx domain.Tx) error {
			return tx.Turn(t.Context(), l, turned, domain.Action{
				LetterID: l.ID, Kind: domain.ActionReplay, By: "ann", Result: domain.ResultSentRound, At: epoch.Add(time.Hour),
			})
		})
	}
	got, _ := story(t, s, id)
	require.Len(t, got.Actions, 1)
	require.Equal(t, got.Letters[0].ID, got.Actions[0].LetterID)
	require.Equal(t, epoch, got.Letters[0].At)
	require.Equal(t, epoch.Add(time.Hour), got.Letters[0].ChangedAt)
}

// A charge takes the place of its intent in one transaction, and so it is seen.
func TestTheStoryIsThatOfOneInstant(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for range 50 {
		in := aWaiting()
		put(t, s, in)
		c := aCharge(func(c *domain.Charge) { c.EventID = in.EventID })
		start, done := make(chan struct{}), make(chan error, 1)
		go func() {
			<-start
			done <- tryWrite(t, s, domain.Writes{Delete: ends(read(in)), Charges: []domain.Charge{c}})
		}()
		close(start)
		for finished := false; !finished; {
			got, known, err := s.Event(t.Context(), group, in.EventID)
			require.NoError(t, err)
			require.True(t, known)
			require.NotEqual(t, got.Intent != nil, got.Charge != nil, "one of them")
			finished = got.Charge != nil
		}
		require.NoError(t, <-done)
	}
}
