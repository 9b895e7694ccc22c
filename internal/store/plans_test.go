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

// What is planned while a table is empty must still be right when it is not: no
// statement of the flow may read a table from end to end. PostgreSQL counts.
func TestNoStatementOfTheFlowReadsAWholeTable(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	s, err := store.New(storetest.Config(databaseURL))
	require.NoError(t, err)
	for range 8 { // five plans are made for their values, the next one is kept
		runEveryStatement(t, s)
	}
	require.NoError(t, s.Close()) // a session tells what it has counted when it ends
	await(t, conn, 0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)

	const scans = `SELECT coalesce(string_agg(relname || ' ' || seq_scan, ', '), '') FROM pg_stat_user_tables
		WHERE relname <> 'goose_db_version' AND seq_scan > 0`
	const used = `SELECT count(*) FROM pg_stat_user_tables WHERE relname <> 'goose_db_version' AND idx_scan > 0`
	await(t, conn, 5, used)
	require.Empty(t, value[string](t, conn, scans))
}

// runEveryStatement uses each method of a transaction on rows of its own.
func runEveryStatement(t *testing.T, s *store.Store) {
	t.Helper()
	opened, due, letter := aCalling(), aWaiting(), aLetter(ofEvent(uuid.New()))
	in, err := s.Open(t.Context(), []domain.Intent{opened})
	require.NoError(t, err)
	require.Len(t, in, 1)
	put(t, s, due)
	seen := sightings(2)
	subjects := []domain.Subject{{EventID: opened.EventID, OrderID: opened.OrderID}}
	later := read(due)
	later.LastError = "busy"
	within(t, s, func(tx domain.Tx) error {
		for range 2 {
			_, err := tx.Claim(t.Context(), group, seen)
			require.NoError(t, err)
		}
		require.NoError(t, tx.Unclaim(t.Context(), group, []uuid.UUID{seen[0].EventID}))
		_, err := tx.Look(t.Context(), subjects)
		require.NoError(t, err)
		_, err = tx.Final(t.Context(), subjects)
		require.NoError(t, err)
		_, err = tx.Due(t.Context(), epoch.Add(time.Second))
		require.NoError(t, err)
		_, err = tx.Lock(t.Context(), []uuid.UUID{opened.EventID})
		require.NoError(t, err)
		require.NoError(t, tx.Write(t.Context(), domain.Writes{
			Update: []domain.Intent{later}, Delete: ends(read(opened)), Charges: []domain.Charge{aCharge()},
		}))
		require.NoError(t, tx.Count(t.Context(), domain.Stats{{Group: group, Topic: "t", Minute: epoch.Truncate(time.Minute)}: {Received: 1}}))
		for range 2 {
			_, err := tx.Park(t.Context(), []domain.Letter{letter})
			require.NoError(t, err)
		}
		return tx.Resolve(t.Context(), []uuid.UUID{letter.EventID}, epoch)
	})
}
