// Package storetest gives every test a database of its own on a real
// PostgreSQL: cloned from a migrated template, dropped when the test ends.
//
// The server is the one that DATABASE_URL names (make test starts one for all
// packages), else a private one that lives as long as the test binary. A machine
// without PostgreSQL fails the tests; it never skips them.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/postgres"
	"example.com/billing/internal/store"
	"example.com/billing/migrations"
)

// timeout bounds each step of making and dropping a database.
const timeout = 90 * time.Second

// server is the server of this test binary.
type server struct {
	once  sync.Once
	admin string // URL of a superuser's maintenance database
	tpl   string // name of the migrated template
	own   *postgres.Server
	err   error
}

var shared server // one server for all tests of a binary

// Main runs the tests of a package, and stops what they shared: first what the
// package names, then the private server, if there was one.
func Main(m *testing.M, stops ...func() error) {
	code := m.Run()
	for _, stop := range append(stops, shared.stop) {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// stop ends the private server.
func (s *server) stop() error {
	if s.own == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.own.Stop(ctx)
}

// URL returns the URL of a fresh, migrated database.
func URL(t testing.TB) string {
	t.Helper()
	shared.once.Do(shared.start)
	require.NoError(t, shared.err, "tests need PostgreSQL's server binaries (Debian: postgresql, Homebrew: postgresql@17) or DATABASE_URL")
	name := "t_" + uuid.NewString()[:18]
	exec(t, fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q`, name, shared.tpl))
	t.Cleanup(func() { exec(t, fmt.Sprintf(`DROP DATABASE %q WITH (FORCE)`, name)) })
	return withDatabase(shared.admin, name)
}

// Empty returns the URL of a fresh database without any table.
func Empty(t testing.TB) string {
	t.Helper()
	shared.once.Do(shared.start)
	require.NoError(t, shared.err)
	name := "e_" + uuid.NewString()[:18]
	exec(t, fmt.Sprintf(`CREATE DATABASE %q`, name))
	t.Cleanup(func() { exec(t, fmt.Sprintf(`DROP DATABASE %q WITH (FORCE)`, name)) })
	return withDatabase(shared.admin, name)
}

// Clone returns the URL of a copy of a database to which nobody is connected.
func Clone(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	name := "c_" + uuid.NewString()[:18]
	exec(t, fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q`, name, strings.TrimPrefix(u.Path, "/")))
	t.Cleanup(func() { exec(t, fmt.Sprintf(`DROP DATABASE %q WITH (FORCE)`, name)) })
	return withDatabase(shared.admin, name)
}

// Config returns a store configuration with short timeouts for a database.
func Config(databaseURL string) store.Config {
	return store.Config{
		URL: databaseURL, MaxTransactions: 8, LockTimeout: 5 * time.Second, IdleTimeout: 10 * time.Second,
		SideLockTimeout: 300 * time.Millisecond, SideTimeout: 5 * time.Second,
	}
}

// Open returns a store on a fresh database, closed when the test ends.
func Open(t testing.TB) (*store.Store, string) {
	t.Helper()
	databaseURL := URL(t)
	s, err := store.New(Config(databaseURL))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, databaseURL
}

// Conn returns a plain connection to a database, for what a test does by hand.
func Conn(t testing.TB, databaseURL string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		require.NoError(t, conn.Close(ctx))
	})
	return conn
}

func exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, shared.admin)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, sql)
	require.NoError(t, errors.Join(err, conn.Close(ctx)))
}

func (s *server) start() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s.admin = os.Getenv("DATABASE_URL")
	if s.admin == "" {
		if s.own, s.err = postgres.Start(ctx, postgres.Options{}); s.err != nil {
			return
		}
		s.admin = s.own.URL("postgres")
	}
	s.tpl, s.err = template(ctx, s.admin)
}

// template makes the migrated template, once for all test binaries that share
// the server: its name is that of the schema.
func template(ctx context.Context, admin string) (string, error) {
	name, err := templateName()
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", "the test server", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // ends the advisory lock either way
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext('billing-test-template'))`); err != nil {
		return "", fmt.Errorf("lock template: %w", err)
	}
	var ready bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND NOT datallowconn)`, name).Scan(&ready)
	if err != nil || ready {
		return name, err
	}
	for _, sql := range []string{`DROP DATABASE IF EXISTS %q WITH (FORCE)`, `CREATE DATABASE %q`} {
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, name)); err != nil {
			return "", fmt.Errorf("make template: %w", err)
		}
	}
	if err := migrate(ctx, withDatabase(admin, name)); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf(`ALTER DATABASE %q WITH ALLOW_CONNECTIONS false`, name)); err != nil {
		return "", fmt.Errorf("close template: %w", err)
	}
	return name, nil
}

func migrate(ctx context.Context, databaseURL string) error {
	m, err := store.NewMigrator(databaseURL, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("migrate template: %w", err)
	}
	_, err = m.Up(ctx)
	return errors.Join(err, m.Close())
}

func templateName() (string, error) {
	digest := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(migrations.FS, path)
		digest.Write([]byte(path))
		digest.Write(content)
		return err
	})
	return "tpl_" + hex.EncodeToString(digest.Sum(nil))[:16], err
}

func withDatabase(admin, name string) string {
	u, err := url.Parse(admin)
	if err != nil {
		panic("DATABASE_URL must be a URL: " + err.Error())
	}
	u.Path = "/" + name
	return u.String()
}
