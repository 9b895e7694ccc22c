package store_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// aMessage returns an event message with a value.
func aMessage(value string) domain.Message {
	return domain.Message{Kind: domain.EventMessage, Key: []byte("42"), Value: []byte(value)}
}

// publish appends messages in a transaction of their own.
func publish(t testing.TB, s *store.Store, messages ...domain.Message) {
	t.Helper()
	require.NoError(t, s.Transact(t.Context(), func(tx domain.Tx) error { return tx.Publish(t.Context(), messages) }))
}

// anOutbox returns a reader, closed when the test ends.
func anOutbox(t testing.TB, databaseURL string) *store.Outbox {
	t.Helper()
	o, err := store.NewOutbox(storetest.Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

// leading returns the outbox's reader. The session of the one before it may take a moment to end.
func leading(t testing.TB, databaseURL string) *store.Outbox {
	t.Helper()
	o := anOutbox(t, databaseURL)
	require.Eventually(t, func() bool {
		won, err := o.Lead(t.Context())
		require.NoError(t, err)
		return won
	}, patience, time.Millisecond)
	return o
}

// following reads until n messages have come, and moves the cursor behind them. An
// open transaction of another test on the same server holds them up for a while.
func following(t testing.TB, o *store.Outbox, n int) (all []domain.Outgoing) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for len(all) < n {
		require.True(t, time.Now().Before(deadline), "%d of %d messages came", len(all), n)
		batch, err := o.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, o.Move(t.Context(), batch, nil))
		all = append(all, batch...)
	}
	require.Len(t, all, n)
	return all
}

func valuesOf(batch []domain.Outgoing) []string {
	values := make([]string, len(batch))
	for i := range batch {
		values[i] = string(batch[i].Value)
	}
	return values
}

func TestWhatIsRolledBackIsNeverPublished(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	lost := errors.New("lost")
	err := s.Transact(t.Context(), func(tx domain.Tx) error {
		require.NoError(t, tx.Publish(t.Context(), []domain.Message{aMessage("never")}))
		return lost
	})
	require.ErrorIs(t, err, lost)
	publish(t, s, aMessage("stands"))
	require.Equal(t, []string{"stands"}, valuesOf(following(t, leading(t, databaseURL), 1)))
}

func TestMessagesComeAsTheyWereAppended(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	want := []domain.Message{
		{Kind: domain.EventMessage, Key: []byte("1"), Value: []byte(`{}`)},
		{Kind: domain.LetterMessage}, // a tombstone without a key
		{Kind: domain.LetterMessage, Key: []byte{}, Value: []byte{}, Headers: []domain.Header{
			{Key: "a", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "\xff\x00", Value: []byte{0xff, 0}},
		}},
	}
	publish(t, s, want...)
	got := following(t, leading(t, databaseURL), len(want))
	for i := range want {
		require.Equal(t, want[i], got[i].Message)
		require.Positive(t, got[i].Position.Transaction)
	}
}

// openTx begins a transaction that has appended a message, on a connection of its own.
func openTx(t *testing.T, databaseURL, value string) pgx.Tx {
	t.Helper()
	tx, err := storetest.Conn(t, databaseURL).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO outbox (kind, key, value) VALUES ('event', '1', $1)`, []byte(value))
	require.NoError(t, err)
	return tx
}

func TestALateCommitOfAnOlderTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	o := leading(t, databaseURL)
	older := openTx(t, databaseURL, "older")
	younger := openTx(t, databaseURL, "younger")
	require.NoError(t, younger.Commit(t.Context()))
	for range 3 {
		batch, err := o.Next(t.Context())
		require.NoError(t, err)
		require.Empty(t, batch, "an older transaction may still come before it")
	}
	backlog, err := o.Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, backlog.Rows)
	require.WithinDuration(t, time.Now(), backlog.Oldest, time.Minute)
	require.NoError(t, older.Commit(t.Context()))
	require.Equal(t, []string{"older", "younger"}, valuesOf(following(t, o, 2)))
}

func TestAReadIsBoundedByRowsAndBytes(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	big := strings.Repeat("x", 3<<20)
	messages := []domain.Message{aMessage(big), aMessage(big), aMessage(big + big)}
	for i := range 1500 {
		messages = append(messages, aMessage(strconv.Itoa(i)))
	}
	publish(t, s, messages...)
	o := leading(t, databaseURL)
	var sizes []int
	var all []string
	require.Eventually(t, func() bool {
		batch, err := o.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, o.Move(t.Context(), batch, nil))
		if len(batch) > 0 {
			sizes = append(sizes, len(batch))
			all = append(all, valuesOf(batch)...)
		}
		return len(all) == len(messages)
	}, patience, time.Millisecond)
	require.Equal(t, []int{2, 1, 1000, 500}, sizes)
	for i := range messages {
		require.Equal(t, string(messages[i].Value), all[i])
	}
}

func TestOneReaderAtATimeAndAnotherWhenItsSessionDies(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	first, second := leading(t, databaseURL), anOutbox(t, databaseURL)
	publish(t, s, aMessage("a"))
	var batch []domain.Outgoing
	require.Eventually(t, func() bool {
		won, err := second.Lead(t.Context())
		require.NoError(t, err)
		require.False(t, won)
		_, err = second.Next(t.Context())
		require.ErrorIs(t, err, store.ErrNotLeading)
		batch, err = first.Next(t.Context())
		require.NoError(t, err)
		return len(batch) == 1
	}, patience, time.Millisecond)

	// The first one has read, and published perhaps, when its session dies.
	execute(t, storetest.Conn(t, databaseURL), `
SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	require.Eventually(t, func() bool {
		won, err := second.Lead(t.Context())
		require.NoError(t, err)
		return won
	}, patience, time.Millisecond)
	require.Error(t, first.Move(t.Context(), batch, nil), "whoever lost the lock moves nothing")
	require.Equal(t, []string{"a"}, valuesOf(following(t, second, 1)), "published again, not skipped")
	won, err := first.Lead(t.Context())
	require.NoError(t, err)
	require.False(t, won)
	require.NoError(t, second.Resign())
	require.Eventually(t, func() bool {
		won, err := first.Lead(t.Context())
		require.NoError(t, err)
		return won
	}, patience, time.Millisecond)
}

func TestAReaderThatWasFencedOffMovesNothing(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	o, conn := leading(t, databaseURL), storetest.Conn(t, databaseURL)
	publish(t, s, aMessage("a"))
	var batch []domain.Outgoing
	require.Eventually(t, func() (some bool) {
		var err error
		batch, err = o.Next(t.Context())
		require.NoError(t, err)
		return len(batch) == 1
	}, patience, time.Millisecond)
	execute(t, conn, `UPDATE outbox_cursor SET epoch = epoch + 1`) // as another reader does first of all
	require.ErrorIs(t, o.Move(t.Context(), batch, nil), store.ErrNotLeading)
	require.Zero(t, number(t, conn, `SELECT id FROM outbox_cursor`))
	require.Equal(t, []string{"a"}, valuesOf(following(t, leading(t, databaseURL), 1)))
}

func TestWhatIsRefusedIsKeptAsideWhole(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	o, conn := leading(t, databaseURL), storetest.Conn(t, databaseURL)
	publish(t, s, aMessage("a"), domain.Message{Kind: domain.LetterMessage, Key: []byte("k"), Value: []byte("large")}, aMessage("c"))
	var batch []domain.Outgoing
	require.Eventually(t, func() (all bool) {
		var err error
		batch, err = o.Next(t.Context())
		require.NoError(t, err)
		return len(batch) == 3
	}, patience, time.Millisecond)
	require.NoError(t, o.Move(t.Context(), batch, []domain.Refusal{{Position: batch[1].Position, Topic: "dlq", Reason: "too large"}}))
	require.Equal(t, 1, number(t, conn, `SELECT count(*) FROM outbox_refused
		WHERE topic = 'dlq' AND reason = 'too large' AND kind = 'dead_letter' AND key = 'k' AND value = 'large'`))
	backlog, err := o.Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, domain.Backlog{Refused: 1}, backlog)

	// Appended again by hand, as the schema says.
	execute(t, conn, `WITH again AS (DELETE FROM outbox_refused RETURNING kind, key, value, headers)
		INSERT INTO outbox (kind, key, value, headers) SELECT * FROM again`)
	require.Equal(t, []string{"large"}, valuesOf(following(t, o, 1)))
}

func TestPruningFreesPublishedSlotsOnly(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	o, conn := leading(t, databaseURL), storetest.Conn(t, databaseURL)
	now := number(t, conn, `SELECT floor(extract(epoch FROM now()) / 21600)::bigint % 6`)
	slot := func(i int) string { return strconv.Itoa((now + 1 + i) % 6) } // 0 to 4: not the one that is being written
	insert := func(i int, value string) string {
		return `INSERT INTO outbox (slot, kind, value) VALUES (` + slot(i) + `, 'event', '` + value + `')`
	}
	rows := func(i int) int { return number(t, conn, `SELECT count(*) FROM outbox_`+slot(i)) }
	for i := range 4 {
		execute(t, conn, insert(i, "x"))
	}
	following(t, o, 4)
	execute(t, conn, insert(1, "unpublished"))
	execute(t, conn, `UPDATE outbox_slot SET published_at = now() - interval '25 hours' WHERE slot <> `+slot(3))
	writer := openTx(t, databaseURL, "")
	_, err := writer.Exec(t.Context(), insert(2, "late"))
	require.NoError(t, err)

	freed, err := o.Prune(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, freed)
	require.Equal(t, []int{0, 2, 1, 1}, []int{rows(0), rows(1), rows(2), rows(3)},
		"an unpublished row, an open transaction and a day that is not over each keep a slot")
	require.NoError(t, writer.Commit(t.Context()))
	require.Equal(t, []string{"", "late", "unpublished"}, slices.Sorted(slices.Values(valuesOf(following(t, o, 3)))))
	freed, err = o.Prune(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Zero(t, freed, "they were published just now")
	execute(t, conn, `UPDATE outbox_slot SET published_at = now() - interval '25 hours'`)
	freed, err = o.Prune(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.GreaterOrEqual(t, freed, 3)
	require.Zero(t, number(t, conn, `SELECT count(*) FROM outbox`))
	publish(t, s, aMessage("goes on"))
	require.Equal(t, []string{"goes on"}, valuesOf(following(t, o, 1)))
}

// A dump carries the tables, and not the count of transactions.
func TestARestoredOutboxIsPublishedOnceMore(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	const far = `(pg_current_xact_id()::text::bigint + 1000000000)::text::xid8`
	execute(t, conn, `INSERT INTO outbox (xid, kind, value) VALUES (`+far+`, 'event', 'published'), (`+far+`, 'event', 'not yet')`)
	execute(t, conn, `UPDATE outbox_cursor SET (xid, id) = (SELECT xid, id FROM outbox ORDER BY id LIMIT 1)`)
	publish(t, s, aMessage("here")) // by the restored service, with an id below the cursor's
	require.Equal(t, []string{"published", "not yet", "here"}, valuesOf(following(t, leading(t, databaseURL), 3)))
}

func TestTheHourDecidesTheSlot(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	publish(t, s, aMessage("x"))
	require.Equal(t, 1, number(t, storetest.Conn(t, databaseURL), `
SELECT count(*) FROM outbox WHERE slot = floor(extract(epoch FROM created_at) / 3600 / 6)::bigint % 6 AND slot BETWEEN 0 AND 5`))
}

func number(t testing.TB, conn *pgx.Conn, query string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, conn.QueryRow(ctx, query).Scan(&n), query)
	return n
}
