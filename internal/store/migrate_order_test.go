package store_test

import (
	"database/sql"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
	"example.com/billing/migrations"
)

// onlyThese migrates a database as a binary did that carried these migrations alone.
func onlyThese(t *testing.T, databaseURL string, carried ...int64) {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	some := fstest.MapFS{}
	for i, number := range versions(t) {
		if !slices.Contains(carried, number) {
			continue
		}
		text, err := fs.ReadFile(migrations.FS, files[i])
		require.NoError(t, err)
		some[files[i]] = &fstest.MapFile{Data: text}
	}
	db, err := sql.Open("pgx", databaseURL)
	require.NoError(t, err)
	p, err := goose.NewProvider(goose.DialectPostgres, db, some, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	done, err := p.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, done, len(carried))
	require.NoError(t, p.Close())
}

// shape is every column of the schema with its type, and every index.
const shape = `SELECT string_agg(line, E'\n' ORDER BY line) FROM (
	SELECT format('%s.%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) AS line
	FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
	WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
	UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
) AS all_of_it`

// Dead letters' actions (10), and all that came later, were there before the outbox (7)
// and the positions (8) were.
func TestADatabaseThatSkippedMigrationsGetsThemLater(t *testing.T) {
	t.Parallel()
	straight, crooked := storetest.Empty(t), storetest.Empty(t)
	_, err := migrator(t, straight).Up(t.Context())
	require.NoError(t, err)
	skipped := func(number int64) bool { return number == 7 || number == 8 }
	have := slices.DeleteFunc(versions(t), skipped)
	onlyThese(t, crooked, have...)

	s, err := store.New(storetest.Config(crooked))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.ErrorContains(t, s.CheckSchema(t.Context()), "the schema is not that of this version", "it is not ready before")
	m := migrator(t, crooked)
	require.Equal(t, len(have), applied(t, m), "status tells which are missing")
	done, err := m.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, done, steps(t)-len(have))
	require.Equal(t, steps(t), applied(t, m))
	require.NoError(t, s.CheckSchema(t.Context()))
	require.Equal(t, value[string](t, storetest.Conn(t, straight), shape), value[string](t, storetest.Conn(t, crooked), shape))

	for range steps(t) {
		_, some, err := m.Down(t.Context())
		require.NoError(t, err)
		require.True(t, some)
	}
	require.Empty(t, value[string](t, storetest.Conn(t, crooked), tables), "down leaves nothing behind")
}
