package store_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// allPages walks a list to its end and returns its items and the number of pages.
func allPages[T any](t *testing.T, list func(cursor string) (domain.Page[T], error)) (items []T, pages int) {
	t.Helper()
	for cursor := ""; ; pages++ {
		require.Less(t, pages, 100, "a list has an end")
		page, err := list(cursor)
		require.NoError(t, err)
		items = append(items, page.Items...)
		if page.Next == "" {
			return items, pages + 1
		}
		cursor = page.Next
	}
}

func newestFirst(a, b domain.Charge) int {
	if c := b.SettledAt.Compare(a.SettledAt); c != 0 {
		return c
	}
	return bytes.Compare(b.EventID[:], a.EventID[:])
}

// Most charges of a batch settle at one instant: a page that ended among them
// must go on exactly there.
func TestChargesArePagedNewestFirstWithoutGapsOrRepetitions(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	var charges []domain.Charge
	for i := range 60 {
		charges = append(charges, aCharge(func(c *domain.Charge) { c.SettledAt = epoch.Add(time.Duration(i/20) * time.Microsecond) }))
	}
	write(t, s, domain.Writes{Charges: slices.Clone(charges)})
	slices.SortFunc(charges, newestFirst)

	for limit, pages := range map[int]int{1: 60, 7: 9, 20: 3, 59: 2, 60: 1, 500: 1} {
		got, n := allPages(t, func(cursor string) (domain.Page[domain.Charge], error) {
			return s.Charges(t.Context(), domain.ChargeFilter{Cursor: cursor, Limit: limit})
		})
		require.Equal(t, charges, got, limit)
		require.Equal(t, pages, n, limit)
	}
}

func TestChargesThatComeMeanwhileShiftNoPage(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	old := []domain.Charge{aCharge(), aCharge(), aCharge(), aCharge()}
	write(t, s, domain.Writes{Charges: slices.Clone(old)})
	slices.SortFunc(old, newestFirst)
	first, err := s.Charges(t.Context(), domain.ChargeFilter{Limit: 2})
	require.NoError(t, err)
	write(t, s, domain.Writes{Charges: []domain.Charge{aCharge(func(c *domain.Charge) { c.SettledAt = epoch.Add(time.Hour) })}})
	second, err := s.Charges(t.Context(), domain.ChargeFilter{Limit: 2, Cursor: first.Next})
	require.NoError(t, err)
	require.Equal(t, old, append(first.Items, second.Items...))
	require.Empty(t, second.Next)
}

func TestChargesAreFilteredByOrderAndStatus(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	refused := aCharge(declined)
	taken := aCharge(func(c *domain.Charge) { c.OrderID, c.SettledAt = refused.OrderID, epoch.Add(time.Second) })
	write(t, s, domain.Writes{Charges: []domain.Charge{aCharge(), refused, taken, aCharge(declined)}})
	for name, tc := range map[string]struct {
		filter domain.ChargeFilter
		want   []domain.Charge
	}{
		"by order":               {domain.ChargeFilter{OrderID: refused.OrderID}, []domain.Charge{taken, refused}},
		"by order and status":    {domain.ChargeFilter{OrderID: refused.OrderID, Status: domain.ChargeDeclined}, []domain.Charge{refused}},
		"by a status of nothing": {domain.ChargeFilter{Status: domain.ChargeDiscarded}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.filter.Limit = 10
			page, err := s.Charges(t.Context(), tc.filter)
			require.NoError(t, err)
			require.Equal(t, tc.want, page.Items)
		})
	}
}

func TestLettersArePagedNewestFirstAndFiltered(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	event := uuid.New()
	var all []domain.Letter
	for i := range 25 {
		l := aLetter()
		if i%5 == 0 {
			l = aLetter(ofEvent(event))
		}
		all = append(all, l)
		park(t, s, l)
	}
	slices.Reverse(all)
	list := func(f domain.LetterFilter) (offsets []int64, pages int) {
		got, pages := allPages(t, func(cursor string) (domain.Page[domain.Letter], error) {
			f.Cursor, f.Limit = cursor, 5
			return s.Letters(t.Context(), f)
		})
		for i := range got {
			offsets = append(offsets, got[i].Record.Offset)
		}
		return offsets, pages
	}
	offsets := func(keep func(*domain.Letter) bool) (o []int64) {
		for i := range all {
			if keep(&all[i]) {
				o = append(o, all[i].Record.Offset)
			}
		}
		return o
	}
	got, pages := list(domain.LetterFilter{})
	require.Equal(t, offsets(func(*domain.Letter) bool { return true }), got)
	require.Equal(t, 5, pages)
	got, _ = list(domain.LetterFilter{EventID: event})
	require.Equal(t, offsets(func(l *domain.Letter) bool { return l.EventID == event }), got)
	got, _ = list(domain.LetterFilter{Reason: domain.ReasonJSON, State: domain.LetterOpen})
	require.Equal(t, offsets(func(l *domain.Letter) bool { return l.Reason == domain.ReasonJSON }), got)
	got, _ = list(domain.LetterFilter{State: domain.LetterResolved})
	require.Empty(t, got)
}

func TestACursorOfSomewhereElseIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, cursor := range []string{
		"x", "=", "%00", encode("|"), encode("2026-03-14T15:09:26Z"), encode("2026-03-14T15:09:26Z|"),
		encode("2026-03-14T15:09:26Z|x"), encode("now|" + uuid.NewString()), encode("2026-03-14|" + uuid.NewString()), "17",
	} {
		_, err := s.Charges(t.Context(), domain.ChargeFilter{Cursor: cursor, Limit: 1})
		require.ErrorIs(t, err, domain.ErrCursor, cursor)
	}
	for _, cursor := range []string{"x", "1.0", "0x1", " 1", "0", "-1", "+1", "01", "9223372036854775808", "1; DROP TABLE charge", "\x00"} {
		_, err := s.Letters(t.Context(), domain.LetterFilter{Cursor: cursor, Limit: 1})
		require.ErrorIs(t, err, domain.ErrCursor, cursor)
		_, err = s.Duplicates(t.Context(), domain.DuplicateFilter{Group: group, Cursor: cursor, Limit: 1})
		require.ErrorIs(t, err, domain.ErrCursor, cursor)
	}
}

func TestAPageHasALimitWhateverIsAsked(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	charges := make([]domain.Charge, domain.MaxPageLimit+1)
	many := make([]domain.Letter, len(charges))
	for i := range charges {
		charges[i], many[i] = aCharge(), aLetter()
	}
	write(t, s, domain.Writes{Charges: charges})
	park(t, s, many...)
	for limit, want := range map[int]int{-1: domain.DefaultPageLimit, 0: domain.DefaultPageLimit, domain.MaxPageLimit + 1: domain.MaxPageLimit} {
		c, err := s.Charges(t.Context(), domain.ChargeFilter{Limit: limit})
		require.NoError(t, err)
		require.Len(t, c.Items, want)
		l, err := s.Letters(t.Context(), domain.LetterFilter{Limit: limit})
		require.NoError(t, err)
		require.Len(t, l.Items, want)
	}
}

// story returns what is known of an event to the tests' group.
func story(t *testing.T, s *store.Store, id uuid.UUID) (domain.EventStory, bool) {
	t.Helper()
	got, known, err := s.Event(t.Context(), group, id)
	require.NoError(t, err)
	return got, known
}

func TestTheStoryOfAnEventHoldsAllThatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	unseen := uuid.New()
	got, known := story(t, s, unseen)
	require.False(t, known)
	require.Equal(t, domain.EventStory{
		EventID: unseen, Group: group, Letters: []domain.Letter{}, Duplicates: []domain.Duplicate{},
	}, got)

	seen := sightings(1)
	claim(t, s, seen)
	id := seen[0].EventID
	got, known = story(t, s, id)
	require.True(t, known)
	at := value[time.Time](t, storetest.Conn(t, databaseURL), `SELECT processed_at FROM processed_event`)
	require.True(t, at.Equal(*got.ProcessedAt))
	seen[0].SeenAt = *got.ProcessedAt
	require.Equal(t, &seen[0], got.Sighting)
	require.Nil(t, got.Charge)
	require.Nil(t, got.Intent)

	in := aWaiting(inState(domain.Parked))
	in.EventID = id
	put(t, s, in)
	for range 25 {
		park(t, s, aLetter(ofEvent(id)))
	}
	park(t, s, aLetter(ofEvent(uuid.New())))
	got, _ = story(t, s, id)
	require.Equal(t, domain.Parked, got.Intent.State)
	require.Len(t, got.Letters, 20, "the newest, and no more")
	require.True(t, slices.IsSortedFunc(got.Letters, func(a, b domain.Letter) int { return int(b.ID - a.ID) }))
	require.Equal(t, strconv.Itoa(25), strconv.FormatInt(got.Letters[0].ID, 10))
	for i := range got.Letters {
		require.Equal(t, id, got.Letters[i].EventID)
		require.Nil(t, got.Letters[i].Record.Value)
	}
}

func TestTheStoryOutlivesTheClaim(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	c := aCharge()
	write(t, s, domain.Writes{Charges: []domain.Charge{c}})
	got, known := story(t, s, c.EventID)
	require.True(t, known)
	require.Nil(t, got.Sighting)
	require.Equal(t, &c, got.Charge)

	l := aLetter(ofEvent(uuid.New()))
	park(t, s, l)
	_, known = story(t, s, l.EventID)
	require.True(t, known, "a letter alone is knowledge")

	in := aCalling()
	put(t, s, in)
	got, known = story(t, s, in.EventID)
	require.True(t, known, "so is an intent")
	require.Equal(t, in.Token, got.Intent.Token)

	others := sightings(1)
	within(t, s, func(tx domain.Tx) error {
		_, err := tx.Claim(t.Context(), "another-group", others)
		return err
	})
	_, known = story(t, s, others[0].EventID)
	require.False(t, known, "another group's claim is not")
}
