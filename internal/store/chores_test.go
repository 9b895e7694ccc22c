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

// closedLetter returns a letter that was closed at an instant, and its id.
func closedLetter(t *testing.T, s *store.Store, state domain.LetterState, at time.Time, change ...func(*domain.Letter)) int64 {
	t.Helper()
	l := aLetter(append(change, func(l *domain.Letter) { l.At = at })...)
	within(t, s, func(tx domain.Tx) error {
		_, err := tx.Park(t.Context(), []domain.Letter{l})
		return err
	})
	page, err := s.Letters(t.Context(), domain.LetterFilter{Limit: 1})
	require.NoError(t, err)
	was := page.Items[0]
	now := was
	now.State = state
	if state == domain.LetterOpen {
		return was.ID
	}
	within(t, s, func(tx domain.Tx) error {
		return tx.Turn(t.Context(), was, now, domain.Action{
			LetterID: was.ID, Kind: domain.ActionReplay, By: "ann", Result: "replayed", At: at,
		})
	})
	return was.ID
}

func TestClosedLettersGoAfterNinetyDaysAndTheirActionsStay(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	old, young := epoch.AddDate(0, 0, -91), epoch.AddDate(0, 0, -89)
	event := uuid.New()
	gone := []int64{
		closedLetter(t, s, domain.LetterDiscarded, old, ofEvent(event)), closedLetter(t, s, domain.LetterReplayed, old),
		closedLetter(t, s, domain.LetterResolved, old),
	}
	unfinished := aWaiting()
	put(t, s, unfinished)
	stays := []int64{
		closedLetter(t, s, domain.LetterOpen, old), closedLetter(t, s, domain.LetterDiscarded, young),
		closedLetter(t, s, domain.LetterReplayed, old, ofEvent(unfinished.EventID)), // the worker may still be at it
	}
	require.EqualValues(t, len(gone), chore(t, s, "dead_letters", epoch))
	for _, id := range gone {
		_, found, err := s.Letter(t.Context(), id)
		require.NoError(t, err)
		require.False(t, found)
	}
	for _, id := range stays {
		_, found, err := s.Letter(t.Context(), id)
		require.NoError(t, err)
		require.True(t, found)
	}
	actions, err := s.Actions(t.Context(), gone)
	require.NoError(t, err)
	require.Len(t, actions, len(gone), "who did what, and when, is kept")
	require.Equal(t, event.String(), value[string](t, conn, `SELECT event_id::text FROM letter_action WHERE letter_id = $1`, gone[0]), "and about what")
	require.Zero(t, chore(t, s, "dead_letters", epoch))
}

func TestTheLogOfDuplicatesIsBounded(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	add := func(n int) {
		execute(t, conn, `INSERT INTO duplicate_log (seen_at, consumer_group, event_id, kind, topic, partition, "offset")
			SELECT now(), 'g', gen_random_uuid(), 'redelivered', 't', 0, n FROM generate_series(1, $1) AS n`, n)
	}
	execute(t, conn, `ALTER SEQUENCE duplicate_log_id_seq INCREMENT BY 3`) // ids have gaps
	add(store.MaxDuplicateLog)
	require.Zero(t, chore(t, s, "duplicate_log", epoch))
	add(12_000)
	require.EqualValues(t, 12_000, chore(t, s, "duplicate_log", epoch))
	require.Equal(t, store.MaxDuplicateLog, value[int](t, conn, `SELECT count(*) FROM duplicate_log`))
	require.Equal(t, 12_000, value[int](t, conn, `SELECT count(*) FROM (SELECT FROM duplicate_log ORDER BY id DESC LIMIT 12000) AS d`))
	require.Equal(t, int64(3*12_000+1), value[int64](t, conn, `SELECT min(id) FROM duplicate_log`), "the oldest go")
}

func TestChoresWorkOnTheSessionThatDoesRetentionAndOnNoOther(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	ranges, err := store.NewRanges(storetest.Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ranges.Close()) })
	key := at(0, 0)
	key.Minute = time.Now().UTC().AddDate(0, 0, -9).Truncate(time.Minute)
	count(t, s, domain.Stats{key: distinct(1)})
	for _, c := range ranges.Chores() {
		_, err := c.Run(t.Context(), time.Now())
		require.ErrorIs(t, err, store.ErrNotKeeping, c.Name())
	}
	leads, err := ranges.Lead(t.Context())
	require.NoError(t, err)
	require.True(t, leads)
	var removed int64
	for _, c := range ranges.Chores() {
		n, err := c.Run(t.Context(), time.Now())
		require.NoError(t, err, c.Name())
		removed += n
	}
	require.EqualValues(t, 2, removed, "the minute, and its sum by the minute, which is too old to be kept")
	require.Equal(t, distinct(1), total(t, s))
}
