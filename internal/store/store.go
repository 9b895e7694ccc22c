package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Connections of the pools that are not configured.
const (
	SideConns    = 4 // intents, and the retry worker's short transactions
	ArchiveConns = 2 // the admin API and health
)

// Config says where the database is and how long it may make us wait. The
// timeouts hold on the database's side too, so that a dead client frees its locks;
// in the midst of a COPY they do not, see [Store.EndStalled].
type Config struct {
	URL string // PostgreSQL URL or key=value string

	MaxTransactions int           // connections of the main pool; at least 1
	LockTimeout     time.Duration // longest wait of a claim for a twin; above the charge budget
	IdleTimeout     time.Duration // longest pause inside a transaction; above budget and margin

	SideLockTimeout time.Duration // short: whoever holds an intent holds it for long
	SideTimeout     time.Duration // longest side transaction and statement of it
}

// Store holds the three pools.
type Store struct {
	main    *gorm.DB
	side    *gorm.DB
	archive *gorm.DB
	pools   []*sql.DB

	mainTimeout, sideTimeout time.Duration // of a statement
}

// New opens the pools. It does not connect: the first transaction does.
func New(c Config) (*Store, error) {
	s := &Store{mainTimeout: c.statementTimeout(), sideTimeout: c.SideTimeout}
	for _, p := range []struct {
		db       **gorm.DB
		name     string
		conns    int
		settings map[string]string
	}{
		{&s.main, mainName, c.MaxTransactions, byIndex(map[string]string{
			"lock_timeout":                        millis(c.LockTimeout),
			"idle_in_transaction_session_timeout": millis(c.IdleTimeout),
			"statement_timeout":                   millis(c.statementTimeout()),
		})},
		{&s.side, sideName, SideConns, byIndex(map[string]string{
			"lock_timeout":                        millis(c.SideLockTimeout),
			"idle_in_transaction_session_timeout": millis(c.SideTimeout),
			"statement_timeout":                   millis(c.SideTimeout),
		})},
		{&s.archive, "billing-archive", ArchiveConns, map[string]string{
			"default_transaction_read_only": "on",
			"statement_timeout":             millis(c.SideTimeout),
			// A plan that is kept for any values would lock every range of processed_event.
			"plan_cache_mode": "force_custom_plan",
		}},
	} {
		pool, err := open(c.URL, p.name, p.conns, p.settings)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.pools = append(s.pools, pool)
		if *p.db, err = wrap(pool); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// byIndex adds what keeps the plans of the flow's statements as they are meant:
// every one finds its rows by an index. A plan that is kept from a time when its
// table was empty would otherwise go on to read the whole of it, until somebody
// has counted its rows; and no such statement is worth being compiled.
func byIndex(settings map[string]string) map[string]string {
	settings["enable_seqscan"], settings["jit"] = "off", "off"
	return settings
}

// open returns a pool of at most conns connections with session settings.
func open(url, name string, conns int, settings map[string]string) (*sql.DB, error) {
	if err := CheckURL(url); err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["application_name"] = name
	cfg.RuntimeParams["timezone"] = "UTC"
	cfg.RuntimeParams["default_transaction_isolation"] = "read committed"
	maps.Copy(cfg.RuntimeParams, settings)
	distrusting := distrust(cfg) // before cfg is copied
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(readUTC), distrusting)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool, nil
}

// readUTC makes times come back in UTC, not in the zone of the machine: what the
// domain wrote is what it reads, and what people see does not depend on the host.
func readUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// wrap puts GORM over a pool. PrepareStmt stays off: pgx keeps prepared
// statements by itself, and inside a transaction GORM's would be prepared twice.
func wrap(pool *sql.DB) (*gorm.DB, error) {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("open gorm: %w", err)
	}
	return db, nil
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	pool, err := s.archive.DB()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// CheckVersion refuses a server that is older than the schema needs.
func (s *Store) CheckVersion(ctx context.Context) error {
	var version int
	if err := s.archive.WithContext(ctx).Raw("SELECT current_setting('server_version_num')::int").Scan(&version).Error; err != nil {
		return fmt.Errorf("read server version: %w", err)
	}
	if version < MinServerVersion {
		return fmt.Errorf("PostgreSQL %d is too old: %d or newer is needed", version/10000, MinServerVersion/10000)
	}
	return nil
}

// CheckSchema reports what this version needs and the database lacks: a table, a
// column, or the right to read it.
func (s *Store) CheckSchema(ctx context.Context) error {
	db := s.archive.WithContext(ctx).Session(&gorm.Session{QueryFields: true}) // every column by its name
	for _, rows := range []any{&[]processedEvent{}, &[]chargeIntent{}, &[]charge{}, &[]deadLetter{}, &[]letterAction{}, &[]dedupDetail{}, &[]consumerOffset{}, &[]loggedDuplicate{}} {
		if err := db.Limit(0).Find(rows).Error; err != nil {
			return schemaError(err)
		}
	}
	for _, columns := range []string{outboxColumns, turnColumns, rollUpColumns()} {
		if err := db.Exec(columns).Error; err != nil {
			return schemaError(err)
		}
	}
	return nil
}

// schemaError tells a schema that lacks something from a database that gave no answer to that.
func schemaError(err error) error {
	if sqlState(err) == "" {
		return fmt.Errorf("read the schema: %w", err)
	}
	return fmt.Errorf("the schema is not that of this version (billing migrate up makes it so): %w", err)
}

// Close closes every pool; it waits for nothing.
func (s *Store) Close() error {
	var errs []error
	for _, p := range s.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// CheckURL returns an error when url is not one; the error does not show it,
// since it may hold a password.
func CheckURL(url string) error {
	if _, err := pgx.ParseConfig(url); err != nil {
		return errors.New("DATABASE_URL: not a PostgreSQL URL or key=value string")
	}
	return nil
}
