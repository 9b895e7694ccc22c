package store_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// stall begins to copy rows on a connection and sends none, as a process does that is stopped right then.
// The channel tells how it ended.
func stall(t *testing.T, conn *sql.Conn) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	rows, more := io.Pipe()
	t.Cleanup(func() { require.NoError(t, more.Close()) })
	go func() {
		ended <- onWire(conn, func(c *pgconn.PgConn) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
			defer cancel()
			_, err := c.CopyFrom(ctx, rows, `COPY charge FROM STDIN`)
			return err
		})
	}()
	return ended
}

// onWire goes past the driver to the protocol.
func onWire(conn *sql.Conn, fn func(*pgconn.PgConn) error) error {
	return conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return errors.New("not a connection of pgx")
		}
		return fn(c.Conn().PgConn())
	})
}

// Whoever was stopped right between two rows cannot be told, and no timeout of the database heeds it.
func TestASessionWhoseClientStandsStillIsEndedAndWhatItClaimedIsFree(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	hasty := storetest.Config(databaseURL)
	hasty.LockTimeout, hasty.IdleTimeout, hasty.SideTimeout = 400*time.Millisecond, time.Second, 600*time.Millisecond // for a statement of main, too, a second
	s, patient := open(t, hasty), open(t, storetest.Config(databaseURL))

	one := sightings(1)
	conn, err := s.Pools()["main"].Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), `BEGIN`)
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), `
INSERT INTO processed_event (event_id, consumer_group, source_topic, source_partition, source_offset, fingerprint) VALUES ($1, $2, 't', 0, 0, $3)`,
		one[0].EventID, group, one[0].Fingerprint[:])
	require.NoError(t, err)
	copying := stall(t, conn)
	side, err := s.Pools()["side"].Conn(t.Context())
	require.NoError(t, err)
	sideCopying := stall(t, side)

	watcher := storetest.Conn(t, databaseURL)
	require.Eventually(t, func() bool {
		return value[bool](t, watcher, `
SELECT count(*) = 2 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientRead' AND state = 'active'
	AND query_start < clock_timestamp() - interval '1.2 s'`)
	}, patience, 10*time.Millisecond, "both stand still for longer than their timeouts allow")
	claims := func() error {
		return s.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, one)
			return err
		})
	}
	require.Equal(t, "55P03", stateOf(claims()), "what it has claimed is locked")

	ended, err := patient.EndStalled(t.Context())
	require.NoError(t, err)
	require.Zero(t, ended, "to one who gives more time, they are not late yet")
	ended, err = s.EndStalled(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, ended)
	require.Equal(t, "57P01", stateOf(<-copying))
	require.Equal(t, "57P01", stateOf(<-sideCopying))
	require.NoError(t, conn.Close())
	require.NoError(t, side.Close())
	require.Eventually(t, func() bool { return claims() == nil }, patience, 10*time.Millisecond)
}

// A claim that waits for its twin is active for long, too: that is what it is for.
func TestASessionThatWaitsForALockOrBetweenStatementsIsNoStalledOne(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	s := open(t, storetest.Config(databaseURL))
	hasty := storetest.Config(databaseURL)
	hasty.LockTimeout, hasty.SideTimeout = 0, 0
	there := aCharge()
	waited := make(chan error, 1)
	within(t, s, func(tx domain.Tx) error {
		if err := tx.Write(t.Context(), domain.Writes{Charges: []domain.Charge{there}}); err != nil {
			return err
		}
		go func() {
			waited <- tryWrite(t, s, domain.Writes{Charges: amongMany([]domain.Charge{there}, someCharge)})
		}()
		awaitCopying(t, databaseURL, 1)
		ended, err := open(t, hasty).EndStalled(t.Context())
		require.NoError(t, err)
		require.Zero(t, ended)
		return nil
	})
	require.ErrorIs(t, <-waited, domain.ErrMoved, "it has gone on waiting")
}

// open returns a store with a configuration of its own.
func open(t *testing.T, c store.Config) *store.Store {
	t.Helper()
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
