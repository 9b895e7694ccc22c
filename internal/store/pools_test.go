package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// stateOf returns the SQLSTATE in an error.
func stateOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

func TestEverySessionOfAPoolIsBounded(t *testing.T) {
	t.Parallel()
	s, err := store.New(store.Config{
		URL: storetest.URL(t), MaxTransactions: 3,
		LockTimeout: 15 * time.Second, IdleTimeout: 17 * time.Second,
		SideLockTimeout: 750 * time.Millisecond, SideTimeout: 4 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	both := func(settings map[string]string) map[string]string {
		settings["TimeZone"], settings["default_transaction_isolation"] = "UTC", "read committed"
		return settings
	}
	for pool, tc := range map[string]struct {
		conns    int
		settings map[string]string
	}{
		"main": {3, both(map[string]string{
			"application_name": "billing", "lock_timeout": "15s", "idle_in_transaction_session_timeout": "17s",
			"statement_timeout": "19s", "default_transaction_read_only": "off", "enable_seqscan": "off", "jit": "off",
		})},
		"side": {store.SideConns, both(map[string]string{
			"application_name": "billing-side", "lock_timeout": "750ms", "idle_in_transaction_session_timeout": "4s",
			"statement_timeout": "4s", "default_transaction_read_only": "off", "enable_seqscan": "off", "jit": "off",
		})},
		"archive": {store.ArchiveConns, both(map[string]string{
			"application_name": "billing-archive", "statement_timeout": "4s", "default_transaction_read_only": "on", "enable_seqscan": "on",
		})},
	} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			db := s.Pools()[pool]
			require.Equal(t, tc.conns, db.Stats().MaxOpenConnections)
			for setting, want := range tc.settings {
				var got string
				require.NoError(t, db.QueryRowContext(t.Context(), "SHOW "+setting).Scan(&got))
				require.Equal(t, want, got, setting)
			}
		})
	}
}

func TestTheArchivesPoolRefusesToWrite(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	_, err := s.Pools()["archive"].ExecContext(t.Context(), `DELETE FROM charge`)
	require.Equal(t, "25006", stateOf(err))
}

func TestAClaimDoesNotWaitForATwinForEver(t *testing.T) {
	t.Parallel()
	c := storetest.Config(storetest.URL(t))
	c.LockTimeout = 100 * time.Millisecond
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	one := sightings(1)
	within(t, s, func(tx domain.Tx) error {
		_, err := tx.Claim(t.Context(), group, one)
		require.NoError(t, err)
		err = s.Transact(t.Context(), func(twin domain.Tx) error {
			_, err := twin.Claim(t.Context(), group, one)
			return err
		})
		require.Equal(t, "55P03", stateOf(err))
		require.NotErrorIs(t, err, domain.ErrData)
		return nil
	})
}

// A client that has gone silent inside a transaction loses it, and its locks.
func TestASilentTransactionIsEndedByTheDatabase(t *testing.T) {
	t.Parallel()
	c := storetest.Config(storetest.URL(t))
	c.IdleTimeout = time.Second // above what a busy machine needs between two statements
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn := storetest.Conn(t, c.URL)
	one := sightings(1)
	err = s.Transact(t.Context(), func(tx domain.Tx) error {
		_, err := tx.Claim(t.Context(), group, one)
		require.NoError(t, err)
		await(t, conn, 0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'billing'`)
		return nil
	})
	require.Error(t, err, "a commit that did not happen is not reported as one")
	require.Empty(t, claim(t, s, one).Earlier, "the event is fresh for the next one")
}

func TestATerminatedBackendIsAnErrorAndThePoolRecovers(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	conn := storetest.Conn(t, databaseURL)
	in := aWaiting()
	err := s.Transact(t.Context(), func(tx domain.Tx) error {
		if err := tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{in}}); err != nil {
			return err
		}
		execute(t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'billing'`)
		_, err := tx.Lock(t.Context(), []uuid.UUID{in.EventID})
		return err
	})
	require.Error(t, err)
	require.NotErrorIs(t, err, domain.ErrData)
	require.Empty(t, locked(t, s, in.EventID))

	// Idle ones, too: what the pool kept for later is found dead and replaced.
	execute(t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'billing%'`)
	await(t, conn, 0, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'billing%'`)
	put(t, s, in)
	require.NoError(t, s.Ping(t.Context()))
}

func TestErrorsOfTheDatabaseAreToldApartBySQLSTATE(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	taken := aCharge()
	write(t, s, domain.Writes{Charges: []domain.Charge{taken}})
	errOwn := errors.New("our own")
	for name, tc := range map[string]struct {
		do    func(domain.Tx) error
		state string
		data  bool
	}{
		"a NUL in a text is data": {func(tx domain.Tx) error {
			_, err := tx.Park(t.Context(), []domain.Letter{aLetter(func(l *domain.Letter) { l.Detail = "\x00" })})
			return err
		}, "22021", true},
		"a text that is not UTF-8 is data": {func(tx domain.Tx) error {
			return tx.Write(t.Context(), domain.Writes{Charges: []domain.Charge{aCharge(func(c *domain.Charge) { c.ProviderChargeID = "\xff" })}})
		}, "22021", true},
		"a broken check is not": {func(tx domain.Tx) error {
			return tx.Write(t.Context(), domain.Writes{Charges: []domain.Charge{aCharge(func(c *domain.Charge) { c.OrderID = -1 })}})
		}, "23514", false},
		"an error of our own is left as it is": {func(domain.Tx) error { return errOwn }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for pool, transact := range map[string]func(context.Context, func(domain.Tx) error) error{"main": s.Transact, "side": s.Aside} {
				err := transact(t.Context(), tc.do)
				require.Equal(t, tc.state, stateOf(err), pool)
				require.Equal(t, tc.data, errors.Is(err, domain.ErrData), pool)
				require.Equal(t, tc.state == "", errors.Is(err, errOwn), pool)
			}
		})
	}
}

func TestATransactionThatDoesNotCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	in := aWaiting()
	insert := func(tx domain.Tx) {
		require.NoError(t, tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{in}}))
	}
	errOwn := errors.New("our own")
	require.ErrorIs(t, s.Transact(t.Context(), func(tx domain.Tx) error { insert(tx); return errOwn }), errOwn)
	require.Empty(t, locked(t, s, in.EventID), "after an error")

	require.PanicsWithValue(t, "oh", func() { _ = s.Transact(t.Context(), func(tx domain.Tx) error { insert(tx); panic("oh") }) })
	require.Empty(t, locked(t, s, in.EventID), "after a panic")

	ctx, cancel := context.WithCancel(t.Context())
	require.Error(t, s.Transact(ctx, func(tx domain.Tx) error { insert(tx); cancel(); return nil }))
	require.Empty(t, locked(t, s, in.EventID), "after its context has ended")

	require.Error(t, s.Transact(t.Context(), func(tx domain.Tx) error {
		insert(tx)
		bad := aWaiting(func(in *domain.Intent) { in.OrderID = -1 })
		require.Error(t, tx.Write(t.Context(), domain.Writes{Insert: []domain.Intent{bad}}))
		return nil // forgets the error: the commit must tell
	}))
	require.Empty(t, locked(t, s, in.EventID), "after a statement that failed")
}

func TestTheServersVersionIsChecked(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	require.NoError(t, s.CheckVersion(t.Context()))

	// A server that says it is of version 14: its own function stands behind ours.
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, `CREATE SCHEMA old`)
	execute(t, conn, `CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql RETURN '140012'`)
	old, err := store.New(storetest.Config(databaseURL + "&options=-csearch_path%3Dold,pg_catalog"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, old.Close()) })
	require.ErrorContains(t, old.CheckVersion(t.Context()), "PostgreSQL 14 is too old: 15 or newer is needed")
}

func TestAnUnusableURLIsRefusedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://billing:hunter2@localhost:port/billing", "postgres://billing:hunter2@[::1/billing",
		"host=localhost port=none password=hunter2", "postgres://billing:hunter2@localhost/billing?sslmode=perhaps",
	} {
		_, errNew := store.New(storetest.Config(url))
		_, errMigrator := store.NewMigrator(url, nil)
		for _, err := range []error{store.CheckURL(url), errNew, errMigrator} {
			require.ErrorContains(t, err, "DATABASE_URL")
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
	for _, url := range []string{"postgres://billing:hunter2@localhost/billing", "host=localhost user=billing", ""} {
		require.NoError(t, store.CheckURL(url))
	}
}

func TestADatabaseThatIsNotThereIsAnErrorInTime(t *testing.T) {
	t.Parallel()
	s, err := store.New(storetest.Config("postgres://billing:hunter2@127.0.0.1:1/billing?connect_timeout=5"))
	require.NoError(t, err, "opening does not connect")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, err := range []error{
		s.Ping(t.Context()), s.CheckVersion(t.Context()),
		s.Transact(t.Context(), func(domain.Tx) error { return nil }),
	} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
