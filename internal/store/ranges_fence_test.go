package store_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// holdsCommits keeps whoever has attached a range from committing while somebody holds the
// advisory lock 1: by a deferred trigger, which is the last thing that runs.
const holdsCommits = `
CREATE TABLE attached (at timestamptz);
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON attached DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold();
CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO attached VALUES (now()); END $$;
CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION note()`

// late is a session that lists the ranges while one is attached.
type late struct {
	url     string
	store   *store.Store
	session *sql.DB // of one connection
	ranges  *store.Ranges
	conn    *pgx.Conn
	known   []domain.Sighting // in the new range
}

// missed runs do on the session of a pool such that it has begun to list the ranges before
// one is attached and hears of that while it does so, which it takes for having listed it:
// the catalog of tables is locked when it comes to the entry of another range.
func missed(t *testing.T, pool string, do func(*late) error) (l *late, done error) {
	t.Helper()
	databaseURL := storetest.URL(t)
	c := storetest.Config(databaseURL)
	c.MaxTransactions = 1
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	l = &late{url: databaseURL, store: s, session: s.Pools()[pool], ranges: keeping(t, databaseURL), conn: storetest.Conn(t, databaseURL)}
	l.session.SetMaxOpenConns(1)
	attach(t, l.ranges, dayOf(epoch.Add(-24*time.Hour)))
	l.known = sightingsAt(epoch, 5)
	claim(t, s, l.known)
	for range 3 { // all that it needs is in its caches
		require.NoError(t, do(l))
	}
	// The session drops its list, and the entry of the other range.
	execute(t, l.conn, `ALTER TABLE ONLY processed_event ALTER COLUMN consumer_group RESET (n_distinct)`)
	execute(t, l.conn, `ALTER TABLE processed_event_20260313_20260314 SET (fillfactor = 100)`)
	_, err = l.session.ExecContext(t.Context(), `PREPARE opened AS SELECT FROM processed_event`)
	require.NoError(t, err)

	execute(t, l.conn, holdsCommits)
	execute(t, l.conn, `SELECT pg_advisory_lock(1)`)
	attached := make(chan error, 1)
	go func() {
		_, err := l.ranges.Attach(t.Context(), dayOf(epoch), 1000, patience)
		attached <- err
	}()
	awaitWaiters(t, l.conn, 1)

	tx, err := l.conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- do(l) }()
	await(t, l.conn, 2, `SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	execute(t, l.conn, `SELECT pg_advisory_unlock(1)`)
	require.NoError(t, <-attached)
	require.NoError(t, tx.Rollback(t.Context()))
	return l, <-ended
}

// refusedOrKnown is for a server that makes its list once more, too.
func refusedOrKnown(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		require.Equal(t, "23514", stateOf(err), err)
	}
}

// Without the fence it claims events that are claimed already, into another table.
func TestASessionThatHasNotHeardOfARangeClaimsNothingOfItAndIsReplaced(t *testing.T) {
	t.Parallel()
	l, err := missed(t, "main", func(l *late) error {
		return l.store.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, l.known)
			return err
		})
	})
	refusedOrKnown(t, err)
	require.Zero(t, value[int](t, l.conn, `SELECT count(*) FROM processed_event_default`))
	require.Len(t, claim(t, l.store, l.known).Earlier, 5, "another session knows them")
}

func TestASessionThatOnlyReadsHearsOfARangeInTheNextTurn(t *testing.T) {
	t.Parallel()
	seen := 0
	l, err := missed(t, "archive", func(l *late) error {
		return l.session.QueryRowContext(t.Context(), `SELECT count(*) FROM processed_event`).Scan(&seen)
	})
	require.NoError(t, err)
	written := func() string {
		return value[string](t, l.conn, `SELECT xmin::text FROM pg_attribute WHERE attrelid = 'processed_event'::regclass AND attname = 'event_id'`)
	}
	before := written()
	vacuum, err := storetest.Conn(t, l.url).Begin(t.Context())
	require.NoError(t, err)
	_, err = vacuum.Exec(t.Context(), `LOCK TABLE ONLY processed_event IN SHARE UPDATE EXCLUSIVE MODE`)
	require.NoError(t, err)
	require.NoError(t, l.ranges.Clear(t.Context(), shortly), "whoever is in the way fails no turn")
	require.Equal(t, before, written())
	require.NoError(t, vacuum.Rollback(t.Context()))

	commit := openClaim(t, l.store, l.known[:0])
	require.NoError(t, l.ranges.Clear(t.Context(), shortly), "no batch is in the way")
	commit()
	require.NoError(t, l.session.QueryRowContext(t.Context(), `SELECT count(*) FROM processed_event`).Scan(&seen))
	require.Equal(t, 5, seen)
	told := written()
	require.NotEqual(t, before, told)
	require.NoError(t, l.ranges.Clear(t.Context(), shortly))
	require.Equal(t, told, written(), "nothing is new")
}

func TestTheFenceStandsForAsLongAsTheRange(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	conn := storetest.Conn(t, databaseURL)
	claim(t, s, sightingsAt(epoch, 3))
	attach(t, r, dayOf(epoch))
	require.NoError(t, r.Clear(t.Context(), shortly))
	from, to := dayOf(epoch).Bounds()
	for id, state := range map[string]string{from.String(): "23514", to.String(): ""} {
		_, err := conn.Exec(t.Context(), `INSERT INTO processed_event_default SELECT $1, 'by hand', now(), 't', 0, 0, fingerprint FROM processed_event LIMIT 1`, id)
		require.Equal(t, state, stateOf(err), id)
	}
	require.Equal(t, "processed_not_20260314_20260315", value[string](t, conn, `SELECT conname FROM pg_constraint WHERE conrelid = 'processed_event_default'::regclass AND conname LIKE '%not%'`))

	leaf := leafOf(t, r, epoch)
	require.NoError(t, r.Empty(t.Context(), leaf, shortly))
	require.NoError(t, r.Drop(t.Context(), leaf, shortly))
	claim(t, s, sightingsAt(epoch, 3)) // late ones lie in the default partition
	require.Equal(t, 4, value[int](t, conn, `SELECT count(*) FROM processed_event_default`))
}

// Sessions that are new list the ranges just when one is attached: of four moves one found
// such a session, before there was a fence.
func TestNoMoveThatNewSessionsMeetLeavesARowBehind(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	r, conn := keeping(t, databaseURL), storetest.Conn(t, databaseURL)
	for d := range 14 {
		attach(t, r, dayOf(epoch.Add(-time.Duration(d+1)*24*time.Hour)))
	}
	for d := range 40 {
		span := dayOf(epoch.Add(time.Duration(d) * 24 * time.Hour))
		meet(t, databaseURL, r, span)
		require.Zero(t, value[int](t, conn, `SELECT count(*) FROM processed_event_default`), span)
		require.Equal(t, 8, value[int](t, conn, `SELECT count(*) FROM processed_event WHERE event_id >= $1`, domain.FirstID(span.From)), span)
	}
}

// meet moves four events into their range while a new store claims them, and four more.
func meet(t *testing.T, databaseURL string, r *store.Ranges, span domain.Span) {
	t.Helper()
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	known, all := sightingsAt(span.From, 4), sightingsAt(span.From.Add(time.Hour), 4)
	claim(t, s, known)
	require.NoError(t, s.Close())
	s, err = store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	gate, batches := make(chan struct{}), errgroup.Group{}
	for _, after := range []time.Duration{0, 2, 4, 6} {
		batches.Go(func() error {
			<-gate
			time.Sleep(after * time.Millisecond) // a session takes a few to begin, and so does a move
			return again(t.Context(), s, slices.Concat(known, all))
		})
	}
	close(gate)
	_, err = r.Attach(t.Context(), span, 1000, patience)
	require.NoError(t, err)
	require.NoError(t, batches.Wait())
	require.NoError(t, s.Close())
}

// again claims as the flow does: what a check has refused is run again.
func again(ctx context.Context, s *store.Store, events []domain.Sighting) (err error) {
	for range 10 {
		err = s.Transact(ctx, func(tx domain.Tx) error {
			_, err := tx.Claim(ctx, group, events)
			return err
		})
		if stateOf(err) != "23514" {
			break
		}
	}
	return err
}
