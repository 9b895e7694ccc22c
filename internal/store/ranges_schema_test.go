package store_test

import (
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// inSchema returns the URL of the same database with another schema, migrated.
func inSchema(t *testing.T, databaseURL, schema string) string {
	t.Helper()
	execute(t, storetest.Conn(t, databaseURL), `CREATE SCHEMA `+pgx.Identifier{schema}.Sanitize())
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	u.RawQuery += "&search_path=" + url.PathEscape(pgx.Identifier{schema}.Sanitize())
	m, err := store.NewMigrator(u.String(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	return u.String()
}

// Advisory locks are the whole database's: without the table in them only one of two
// services would forget, and publish.
func TestServicesInSchemasOfTheirOwnAreInNobodysWay(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	other := inSchema(t, databaseURL, `Other "billing"`)
	ours, theirs := keeping(t, databaseURL), keeping(t, other)
	leading(t, databaseURL)
	leading(t, other)

	s, err := store.New(storetest.Config(other))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	events := sightingsAt(epoch, 3)
	claim(t, s, events)
	attach(t, ours, dayOf(epoch))
	require.Equal(t, 3, attach(t, theirs, dayOf(epoch)))
	require.Len(t, claim(t, s, events).Earlier, 3)
	require.NoError(t, ours.Empty(t.Context(), leafOf(t, ours, epoch), shortly))
	require.Len(t, claim(t, s, events).Earlier, 3, "those of another schema are not ours")
	require.NoError(t, theirs.Empty(t.Context(), leafOf(t, theirs, epoch), shortly))
	require.NoError(t, theirs.Drop(t.Context(), leafOf(t, theirs, epoch), shortly))
	require.True(t, leafOf(t, theirs, epoch).Default)
	require.False(t, leafOf(t, ours, epoch).Default)
}

// A table of another schema that somebody has attached is cleaned row by row; one of the
// same name that is no part of processed_event is none of our business.
func TestATableOfAnotherSchemaIsToldApartFromOneOfTheSameName(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	attach(t, r, dayOf(epoch))
	claim(t, s, sightingsAt(epoch, 2))
	conn := storetest.Conn(t, databaseURL)
	before := dayOf(epoch.Add(-24 * time.Hour))
	from, to := before.Bounds()
	execute(t, conn, `CREATE SCHEMA "Zz archive"`)
	execute(t, conn, `CREATE TABLE "Zz archive".processed_event_20260314_20260315 AS TABLE processed_event`)
	execute(t, conn, `CREATE TABLE "Zz archive".processed_event_20260313_20260314 PARTITION OF processed_event FOR VALUES FROM ('`+from.String()+`') TO ('`+to.String()+`')`)
	claim(t, s, sightingsAt(before.From, 1))
	leaf, foreign := leafOf(t, r, epoch), leafOf(t, r, before.From)
	require.True(t, leaf.Ours)
	require.False(t, foreign.Ours, "we attach nothing there")
	require.Equal(t, "Zz archive", foreign.Schema)

	later := time.Now().Add(time.Hour)
	found, err := r.Overdue(t.Context(), foreign, later, 10)
	require.NoError(t, err)
	require.Equal(t, 1, found.Rows)
	n, _, err := r.Delete(t.Context(), foreign, found.Oldest, later, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, r.Empty(t.Context(), leaf, shortly))
	require.NoError(t, r.Drop(t.Context(), leaf, shortly))
	require.Zero(t, value[int](t, conn, `SELECT count(*) FROM processed_event`))
	require.Equal(t, 2, value[int](t, conn, `SELECT count(*) FROM "Zz archive".processed_event_20260314_20260315`), "a copy that somebody keeps")
}

// In a leaf that somebody has partitioned again a place within a table names a row of each.
func TestDeletingRowByRowTakesNoRowForAnother(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	conn := storetest.Conn(t, databaseURL)
	from, to := dayOf(epoch).Bounds()
	middle := domain.FirstID(dayOf(epoch).From.Add(12 * time.Hour))
	execute(t, conn, `CREATE TABLE halves PARTITION OF processed_event FOR VALUES FROM ('`+from.String()+`') TO ('`+to.String()+`') PARTITION BY RANGE (event_id)`)
	for name, bounds := range map[string][2]uuid.UUID{"morning": {from, middle}, "evening": {middle, to}} {
		execute(t, conn, `CREATE TABLE `+name+` PARTITION OF halves FOR VALUES FROM ('`+bounds[0].String()+`') TO ('`+bounds[1].String()+`')`)
	}
	claim(t, s, sightingsAt(dayOf(epoch).From.Add(time.Hour), 20))
	claim(t, s, sightingsAt(dayOf(epoch).From.Add(20*time.Hour), 20))
	execute(t, conn, `UPDATE morning SET processed_at = '2026-01-01'`)
	execute(t, conn, `VACUUM FULL morning`)
	before := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	n, _, err := r.Delete(t.Context(), leafOf(t, r, epoch), time.Time{}, before, 100)
	require.NoError(t, err)
	require.Equal(t, 20, n)
	require.Equal(t, 20, value[int](t, conn, `SELECT count(*) FROM evening`), "what is not overdue stays")
}
