package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/postgres"
)

func start(t *testing.T, options postgres.Options) *postgres.Server {
	t.Helper()

	s, err := postgres.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })

	return s
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	return conn
}

func query(t *testing.T, address, sql string) string {
	t.Helper()

	var text string
	require.NoError(t, connect(t, address).QueryRow(t.Context(), sql).Scan(&text))

	return text
}

// dataFolder is a folder for data that the server's user can reach; that of t.TempDir is closed to all but its owner.
func dataFolder(t *testing.T) string {
	t.Helper()

	parent, err := os.MkdirTemp("", "billingpgtest") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))

	return filepath.Join(parent, "data, and more")
}

func TestServer(t *testing.T) {
	t.Parallel()

	s := start(t, postgres.Options{Params: map[string]string{"work_mem": "7MB", "timezone": "Asia/Tokyo"}})

	t.Run("it answers over TCP and over its socket", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "127.0.0.1/32", query(t, s.URL("postgres"), "SELECT inet_server_addr()::text"))
		require.Equal(t, "socket", query(t, s.SocketURL("postgres"), "SELECT coalesce(inet_server_addr()::text, 'socket')"))
	})

	t.Run("its settings suit tests, and the caller's win", func(t *testing.T) {
		t.Parallel()

		for name, want := range map[string]string{
			"max_connections": "300", "fsync": "off", "full_page_writes": "off", "synchronous_commit": "on",
			"server_encoding": "UTF8", "work_mem": "7MB", "TimeZone": "Asia/Tokyo",
		} {
			require.Equal(t, want, query(t, s.URL("postgres"), "SELECT current_setting('"+name+"')"), name)
		}
	})

	t.Run("a database is created once, whatever its name", func(t *testing.T) {
		t.Parallel()

		name := `a "b" c/d?e`
		require.NoError(t, s.CreateDatabase(t.Context(), name))
		require.Equal(t, "CREATE TABLE", exec(t, s.URL(name), "CREATE TABLE kept (n int)"))
		require.NoError(t, s.CreateDatabase(t.Context(), name))
		require.Equal(t, "INSERT 0 1", exec(t, s.SocketURL(name), "INSERT INTO kept VALUES (1)"))
	})

	t.Run("a database that cannot be created is an error with its name", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, s.CreateDatabase(t.Context(), ""), "create database : ")
	})
}

func exec(t *testing.T, address, sql string) string {
	t.Helper()

	tag, err := connect(t, address).Exec(t.Context(), sql)
	require.NoError(t, err)

	return tag.String()
}

func TestADurableServerFlushes(t *testing.T) {
	t.Parallel()

	s := start(t, postgres.Options{Durable: true})
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		require.Equal(t, "on", query(t, s.URL("postgres"), "SELECT current_setting('"+name+"')"), name)
	}
}

func TestCommitsSurvive(t *testing.T) {
	t.Parallel()

	for name, restart := range map[string]func(*postgres.Server, context.Context) error{
		"a fast restart":       func(s *postgres.Server, ctx context.Context) error { return s.Restart(ctx, postgres.Fast) },
		"an immediate restart": func(s *postgres.Server, ctx context.Context) error { return s.Restart(ctx, postgres.Immediate) },
		"a killed server": func(s *postgres.Server, ctx context.Context) error {
			if err := s.Kill(); err != nil {
				return err
			}
			<-s.Done()

			return s.Restart(ctx, postgres.Fast)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := start(t, postgres.Options{})
			exec(t, s.URL("postgres"), "CREATE TABLE t (n int)")

			// An open session holds on to the shared memory of a killed server until it sees the death.
			open := connect(t, s.URL("postgres"))
			_, err := open.Exec(t.Context(), "BEGIN; INSERT INTO t VALUES (-1)")
			require.NoError(t, err)

			writer := connect(t, s.URL("postgres"))
			for n := range 100 {
				_, err := writer.Exec(t.Context(), "INSERT INTO t VALUES ($1)", n)
				require.NoError(t, err)
			}

			before, url := s.PID(), s.URL("postgres")
			require.NoError(t, restart(s, t.Context()))
			require.NotEqual(t, before, s.PID())
			require.Equal(t, url, s.URL("postgres"))
			require.Equal(t, "100 rows from 0 to 99", query(t, url, "SELECT count(*) || ' rows from ' || min(n) || ' to ' || max(n) FROM t"))
			require.Error(t, open.Ping(t.Context()))
		})
	}
}

func TestARestartWaitsForTheSessionsOfAKilledServer(t *testing.T) {
	t.Parallel()

	var session atomic.Int64

	// The session is frozen until the new server has complained about it, so that the first try must fail.
	complained := onWrite(func(line string) {
		if pid := session.Load(); pid != 0 && strings.Contains(line, "pre-existing shared memory block") {
			_ = syscall.Kill(int(pid), syscall.SIGCONT)
			session.Store(0)
		}
	})
	s := start(t, postgres.Options{Log: complained})

	pid, err := strconv.Atoi(query(t, s.URL("postgres"), "SELECT pg_backend_pid()::text"))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	session.Store(int64(pid))

	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart(t.Context(), postgres.Fast))
	require.Zero(t, session.Load(), "the new server never saw the old session")
	require.Equal(t, "1", query(t, s.URL("postgres"), "SELECT 1::text"))
}

func TestAnotherServerFindsTheDataOfAGivenFolder(t *testing.T) {
	t.Parallel()

	dir := dataFolder(t)
	first := start(t, postgres.Options{Dir: dir})
	require.NoError(t, first.CreateDatabase(t.Context(), "kept"))
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, first.Stop(t.Context()), "stopping twice")

	second := start(t, postgres.Options{Dir: dir})
	require.Equal(t, "kept", query(t, second.URL("kept"), "SELECT current_database()"))
}

func TestStoppingLeavesNothing(t *testing.T) {
	t.Parallel()

	s, err := postgres.Start(t.Context(), postgres.Options{})
	require.NoError(t, err)

	folder := query(t, s.URL("postgres"), "SELECT current_setting('data_directory')")
	require.DirExists(t, folder)

	// A session that is in use does not hold up the end.
	busy := connect(t, s.URL("postgres"))
	_, err = busy.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)

	require.NoError(t, s.Stop(t.Context()))
	<-s.Done()
	require.NoDirExists(t, filepath.Dir(folder))
	require.ErrorIs(t, syscall.Kill(s.PID(), 0), syscall.ESRCH)
}
