package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

const fences = `SELECT coalesce(array_agg(conname::text ORDER BY conname), '{}') FROM pg_constraint WHERE conrelid = 'processed_event_default'::regclass AND conname LIKE 'processed\_not%'`

// Ranges of before there were fences have none, and an instance of that version takes away
// those of others in each of its turns: to it they are left over.
func TestARangeThatHasLostItsFenceGetsItBackInTheNextTurn(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r, conn := keeping(t, databaseURL), storetest.Conn(t, databaseURL)
	for d := range 3 {
		attach(t, r, dayOf(epoch.AddDate(0, 0, d)))
	}
	execute(t, conn, `CREATE TABLE mine PARTITION OF processed_event FOR VALUES FROM ('01000000-0000-0000-0000-000000000000') TO ('01000000-0000-0000-0000-000000000001')`)
	all := value[[]string](t, conn, fences)
	require.Len(t, all, 3)
	for _, name := range all[:2] {
		execute(t, conn, `ALTER TABLE processed_event_default DROP CONSTRAINT `+name)
	}

	commit := openClaim(t, s, []domain.Sighting{{EventID: uuid.New()}})
	require.NoError(t, r.Clear(t.Context(), shortly), "whoever is in the way fails no turn")
	require.Len(t, value[[]string](t, conn, fences), 1)
	commit()
	require.NoError(t, r.Clear(t.Context(), patience))
	require.Equal(t, all, value[[]string](t, conn, fences))
	for d := range 3 {
		from, _ := dayOf(epoch.AddDate(0, 0, d)).Bounds()
		_, err := conn.Exec(t.Context(), `INSERT INTO processed_event_default (event_id, consumer_group, source_topic, source_partition, source_offset, fingerprint) VALUES ($1, 'by hand', 't', 0, 0, sha256('x'))`, from)
		require.Equal(t, "23514", stateOf(err), d)
	}

	const written = `SELECT max(xmin::text::bigint)::text FROM pg_constraint WHERE conrelid = 'processed_event_default'::regclass`
	before := value[string](t, conn, written)
	require.NoError(t, r.Clear(t.Context(), shortly))
	require.Equal(t, before, value[string](t, conn, written), "nothing is left to be done")
}

// Rows that were claimed past a range before its fence was there keep nobody from putting it up.
func TestAFenceIsPutUpThoughRowsLieBehindIt(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	r, conn := keeping(t, databaseURL), storetest.Conn(t, databaseURL)
	attach(t, r, dayOf(epoch))
	for _, name := range value[[]string](t, conn, fences) {
		execute(t, conn, `ALTER TABLE processed_event_default DROP CONSTRAINT `+name)
	}
	from, _ := dayOf(epoch).Bounds()
	execute(t, conn, `ALTER TABLE processed_event DETACH PARTITION processed_event_default`)
	execute(t, conn, `INSERT INTO processed_event_default (event_id, consumer_group, source_topic, source_partition, source_offset, fingerprint) VALUES ($1, 'past', 't', 0, 0, sha256('x'))`, from)
	execute(t, conn, `CREATE TABLE kept AS SELECT * FROM processed_event_default`)
	execute(t, conn, `TRUNCATE processed_event_default`)
	execute(t, conn, `ALTER TABLE processed_event ATTACH PARTITION processed_event_default DEFAULT`)
	require.NoError(t, r.Clear(t.Context(), patience))
	require.Len(t, value[[]string](t, conn, fences), 1)
	require.False(t, value[bool](t, conn, `SELECT convalidated FROM pg_constraint WHERE conname LIKE 'processed\_not%'`))
}

// With delete a role needs no more than to delete: whoever owns the table attaches its ranges, and has told of them.
func TestARoleThatDoesNotOwnTheTableClearsNothingAndFailsNoTurn(t *testing.T) {
	t.Parallel()
	_, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	owner := keeping(t, databaseURL)
	attach(t, owner, dayOf(epoch))
	require.NoError(t, owner.Resign())
	for _, name := range value[[]string](t, conn, fences) {
		execute(t, conn, `ALTER TABLE processed_event_default DROP CONSTRAINT `+name)
	}
	r := keeping(t, asRole(t, databaseURL, conn, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %[1]q`))
	require.NoError(t, r.Clear(t.Context(), shortly))
	leaves, err := r.Leaves(t.Context())
	require.NoError(t, err, "the session goes on")
	require.Len(t, leaves, 2)
}
