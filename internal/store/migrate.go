package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"example.com/billing/migrations"
)

// Bounds of a migration.
const (
	migrationLockPause = 1  // seconds between tries for the advisory lock
	migrationLockTries = 60 // before another instance's migration is given up on
)

// MinServerVersion is the oldest PostgreSQL that the schema is made for.
const MinServerVersion = 150000

// MigrationStatus is one migration and when it was applied.
type MigrationStatus struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero when it was not
}

// Migrator applies the embedded schema. Any number of instances may start one at
// the same time: an advisory lock lets one work and the others wait.
type Migrator struct{ provider *goose.Provider }

// NewMigrator connects to the database at url.
func NewMigrator(url string, log *slog.Logger) (*Migrator, error) {
	pool, err := open(url, "billing-migrate", 2, nil)
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(migrationLockPause, migrationLockTries))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("migration lock: %w", err), pool.Close())
	}
	p, err := goose.NewProvider(goose.DialectPostgres, pool, migrations.FS,
		goose.WithSessionLocker(locker), goose.WithSlog(log), goose.WithDisableGlobalRegistry(true),
		// Branches that are merged late bring numbers below the newest: each step stands by itself, and what
		// is missing is made up for, as it is on a new database. The alternative is a service that does not start.
		goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read migrations: %w", err), pool.Close())
	}
	return &Migrator{p}, nil
}

// Up applies what is missing and returns it: on an error, too, what was applied
// before it.
func (m *Migrator) Up(ctx context.Context) ([]MigrationStatus, error) {
	results, err := m.provider.Up(ctx)
	if err != nil {
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			results = partial.Applied
		}
		err = fmt.Errorf("migrate up: %w", err)
	}
	applied := make([]MigrationStatus, len(results))
	for i, r := range results {
		applied[i] = MigrationStatus{Version: r.Source.Version, Name: r.Source.Path}
	}
	return applied, err
}

// Down takes the newest migration back and returns it; false when there is none.
func (m *Migrator) Down(ctx context.Context) (MigrationStatus, bool, error) {
	r, err := m.provider.Down(ctx)
	if errors.Is(err, goose.ErrNoNextVersion) {
		return MigrationStatus{}, false, nil
	}
	if err != nil {
		return MigrationStatus{}, false, fmt.Errorf("migrate down: %w", err)
	}
	return MigrationStatus{Version: r.Source.Version, Name: r.Source.Path}, true, nil
}

// Status lists every migration in order.
func (m *Migrator) Status(ctx context.Context) ([]MigrationStatus, error) {
	all, err := m.provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate status: %w", err)
	}
	out := make([]MigrationStatus, len(all))
	for i, s := range all {
		out[i] = MigrationStatus{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt}
	}
	return out, nil
}

// Close ends the connection.
func (m *Migrator) Close() error { return m.provider.Close() }
