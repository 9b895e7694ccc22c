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

// park commits letters and returns the coordinates that were new.
func park(t testing.TB, s *store.Store, letters ...domain.Letter) (fresh map[domain.Coordinates]bool) {
	t.Helper()
	within(t, s, func(tx domain.Tx) (err error) {
		fresh, err = tx.Park(t.Context(), slices.Clone(letters))
		return err
	})
	return fresh
}

// letters returns the whole list, newest first.
func letters(t testing.TB, s *store.Store, f domain.LetterFilter) []domain.Letter {
	t.Helper()
	f.Limit = domain.MaxPageLimit
	page, err := s.Letters(t.Context(), f)
	require.NoError(t, err)
	require.Empty(t, page.Next)
	return page.Items
}

// ofEvent makes a letter of an event's own intent.
func ofEvent(id uuid.UUID) func(*domain.Letter) {
	return func(l *domain.Letter) {
		l.EventID, l.OrderID, l.Reason, l.Reopens = id, 42, domain.ReasonProviderRejected, true
	}
}

func TestALetterComesBackAsItWasParked(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for name, l := range map[string]domain.Letter{
		"of an invalid record": aLetter(),
		"of an event":          aLetter(ofEvent(uuid.New())),
		"of a tombstone":       aLetter(func(l *domain.Letter) { l.Record.Value, l.Record.Key = nil, nil }),
		"of an empty value":    aLetter(func(l *domain.Letter) { l.Record.Value, l.Record.Key = []byte{}, []byte{} }),
		"with any bytes at all": aLetter(func(l *domain.Letter) {
			l.Record.Value, l.Record.Key = []byte("\x00\xff{"), []byte{0}
			l.Record.Headers = []domain.Header{{Key: "\x00\xff", Value: []byte{0xff, 0}}, {Key: "nil"}, {Key: "empty", Value: []byte{}}}
		}),
		"of 2 MiB": aLetter(func(l *domain.Letter) { l.Record.Value = make([]byte, 2<<20) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := l
			require.Equal(t, map[domain.Coordinates]bool{l.Record.Coordinates: true}, park(t, s, l))
			var id int64
			for _, listed := range letters(t, s, domain.LetterFilter{}) {
				if listed.Record.Coordinates == l.Record.Coordinates {
					id = listed.ID
					require.Nil(t, listed.Record.Value, "a list shows no bytes")
					require.Nil(t, listed.Record.Key)
					require.Nil(t, listed.Record.Headers)
				}
			}
			got, found, err := s.Letter(t.Context(), id)
			require.NoError(t, err)
			require.True(t, found)
			l.ID, l.ChangedAt, l.Reopens = id, l.At, false // reopens is an order to the store, not a fact
			require.Equal(t, l, got)
		})
	}
	_, found, err := s.Letter(t.Context(), 1<<62)
	require.NoError(t, err)
	require.False(t, found)
}

func TestAnInvalidRecordIsParkedOnceAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	first, other := aLetter(), aLetter()
	require.Len(t, park(t, s, first), 1)
	execute(t, storetest.Conn(t, databaseURL), `UPDATE dead_letter SET state = 'discarded'`)

	again := first
	again.Detail, again.At = "said otherwise", epoch.Add(time.Hour)
	require.Equal(t, map[domain.Coordinates]bool{other.Record.Coordinates: true}, park(t, s, again, other))
	found := letters(t, s, domain.LetterFilter{State: domain.LetterDiscarded})
	require.Len(t, found, 1)
	require.Equal(t, first.Detail, found[0].Detail)
	require.Equal(t, first.At, found[0].At)
	require.Empty(t, park(t, s), "nothing to park is no error")
}

func TestTwoCopiesOfOneRecordInABatchAreOneLetter(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	l := aLetter()
	require.Equal(t, map[domain.Coordinates]bool{l.Record.Coordinates: true}, park(t, s, l, l))
	require.Len(t, letters(t, s, domain.LetterFilter{}), 1)
}

func TestCoordinatesDifferByEachOfTheirParts(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	at := domain.Coordinates{Topic: "a", Partition: 1, Offset: 1}
	var four []domain.Letter
	for _, c := range []domain.Coordinates{
		at, {Topic: "b", Partition: 1, Offset: 1}, {Topic: "a", Partition: 2, Offset: 1}, {Topic: "a", Partition: 1, Offset: 2},
	} {
		four = append(four, aLetter(func(l *domain.Letter) { l.Record.Coordinates = c }))
	}
	require.Len(t, park(t, s, four...), 4)
}

// An event that is parked once more shows its letter again, with the new reason
// and the bytes and the time of the first.
func TestTheLetterOfAnIntentReopens(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	l := aLetter(ofEvent(uuid.New()))
	park(t, s, l)
	execute(t, conn, `UPDATE dead_letter SET state = 'replayed'`)

	again := l
	again.Reason, again.Detail, again.At = domain.ReasonRetriesExhausted, "503", epoch.Add(time.Hour)
	require.Empty(t, park(t, s, again), "its coordinates were there before")
	found := letters(t, s, domain.LetterFilter{})
	require.Len(t, found, 1)
	require.Equal(t, domain.LetterOpen, found[0].State)
	require.Equal(t, domain.ReasonRetriesExhausted, found[0].Reason)
	require.Equal(t, "503", found[0].Detail)
	require.Equal(t, l.At, found[0].At)
	require.Equal(t, again.At, found[0].ChangedAt)
}

// Most are new, some were there, and of those some reopen: whoever asks is told
// exactly which are new.
func TestParkTellsTheNewLettersOfManyFromThoseThatReopen(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	known := aLetter(ofEvent(uuid.New()))
	stays := aLetter()
	park(t, s, known, stays)
	execute(t, storetest.Conn(t, databaseURL), `UPDATE dead_letter SET state = 'discarded'`)

	say := func(l domain.Letter, detail string) domain.Letter {
		l.Detail = detail
		return l
	}
	twice := aLetter(ofEvent(uuid.New()))
	many := []domain.Letter{say(known, "first word"), say(stays, "unheard"), say(twice, "first word"), say(known, "last word"), say(twice, "last word")}
	want := map[domain.Coordinates]bool{twice.Record.Coordinates: true}
	for range 1100 { // more than two statements hold
		l := aLetter()
		many = append(many, l)
		want[l.Record.Coordinates] = true
	}
	require.Equal(t, want, park(t, s, many...))
	details := map[domain.Coordinates]string{}
	for _, l := range letters(t, s, domain.LetterFilter{State: domain.LetterDiscarded}) {
		details[l.Record.Coordinates] = l.Detail
	}
	require.Equal(t, map[domain.Coordinates]string{stays.Record.Coordinates: stays.Detail}, details)
	for _, l := range []domain.Letter{known, twice} {
		found, err := s.Letters(t.Context(), domain.LetterFilter{EventID: l.EventID})
		require.NoError(t, err)
		require.Len(t, found.Items, 1)
		require.Equal(t, domain.LetterOpen, found.Items[0].State)
		require.Equal(t, "last word", found.Items[0].Detail)
	}
}

func TestLettersAreWrittenByTheirCoordinates(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	var all []domain.Letter
	for _, c := range []domain.Coordinates{
		{Topic: "b", Partition: 0, Offset: 0}, {Topic: "a", Partition: 2, Offset: 1}, {Topic: "a", Partition: 10, Offset: 0}, {Topic: "a", Partition: 2, Offset: 0},
	} {
		all = append(all, aLetter(func(l *domain.Letter) { l.Record.Coordinates = c }))
	}
	park(t, s, all...)
	require.Equal(t, "a/2@0 a/2@1 a/10@0 b/0@0", value[string](t, storetest.Conn(t, databaseURL),
		`SELECT string_agg(format('%s/%s@%s', topic, partition, "offset"), ' ' ORDER BY id) FROM dead_letter`))
}

func TestResolveClosesTheOpenLettersOfItsEvents(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	mine, others := uuid.New(), uuid.New()
	open, replayed, discarded := aLetter(ofEvent(mine)), aLetter(ofEvent(mine)), aLetter(ofEvent(mine))
	conflict := aLetter(ofEvent(mine), func(l *domain.Letter) { l.Reason, l.Reopens = domain.ReasonConflictingPayload, false })
	park(t, s, open, replayed, discarded, conflict, aLetter(ofEvent(others)), aLetter())
	for state, l := range map[string]domain.Letter{"replayed": replayed, "discarded": discarded} {
		execute(t, conn, `UPDATE dead_letter SET state = $1 WHERE "offset" = $2`, state, l.Record.Offset)
	}
	later := epoch.Add(time.Hour)
	within(t, s, func(tx domain.Tx) error { return tx.Resolve(t.Context(), []uuid.UUID{mine}, later) })

	for state, want := range map[domain.LetterState]int{domain.LetterResolved: 2, domain.LetterDiscarded: 1, domain.LetterOpen: 3} {
		require.Len(t, letters(t, s, domain.LetterFilter{State: state}), want, state)
	}
	require.Equal(t, 2, value[int](t, conn, `SELECT count(*) FROM dead_letter WHERE updated_at = $1 AND state = 'resolved'`, later))
	stays := letters(t, s, domain.LetterFilter{Reason: domain.ReasonConflictingPayload})
	require.Equal(t, domain.LetterOpen, stays[0].State, "another record's claim to the id is for an operator to judge")
	within(t, s, func(tx domain.Tx) error { return tx.Resolve(t.Context(), nil, later) })
}
