package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/billing/internal/sandbox/postgres"
)

// queryTimeout bounds one look at the database.
const queryTimeout = 2 * time.Minute

// books looks at the databases from outside. Its own connection is to another
// database than the one that is measured, so that it is not counted.
type books struct {
	server *postgres.Server
	own    *pgxpool.Pool
}

func openBooks(ctx context.Context, server *postgres.Server) (*books, error) {
	config, err := pgxpool.ParseConfig(server.URL("postgres"))
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	return &books{server: server, own: pool}, nil
}

func (b *books) close() { b.own.Close() }

// drop removes a database.
func (b *books) drop(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if _, err := b.own.Exec(ctx, `DROP DATABASE `+pgx.Identifier{database}.Sanitize()+` WITH (FORCE)`); err != nil {
		return fmt.Errorf("drop database %s: %w", database, err)
	}
	return nil
}

// connections counts those to a database.
func (b *books) connections(ctx context.Context, database string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = b.own.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`, database).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count connections: %w", err)
	}
	return n, nil
}

// with looks into a database with a connection of its own.
func (b *books) with(ctx context.Context, database string, look func(context.Context, *pgx.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.server.URL(database))
	if err != nil {
		return fmt.Errorf("database %s: %w", database, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return look(ctx, conn)
}

// unfinished reports whether charges are begun and not finished.
func (b *books) unfinished(ctx context.Context, database string) (some bool, err error) {
	err = b.with(ctx, database, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM charge_intent WHERE state NOT IN ('parked', 'held'))`).Scan(&some)
	})
	return some, err
}

// commit is when the charge of an order was committed.
type commit struct {
	order int64
	at    time.Time
}

// commits are those of the charges whose source is a topic, in order of time.
func (b *books) commits(ctx context.Context, database, topic string) (all []commit, err error) {
	err = b.with(ctx, database, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT order_id, pg_xact_commit_timestamp(xmin) FROM charge WHERE source_topic = $1 ORDER BY 2, 1`, topic)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (x commit, err error) {
			return x, row.Scan(&x.order, &x.at)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the commits: %w", err)
	}
	return all, nil
}

// counted is what billing's own statistics say.
type counted struct {
	received, processed, duplicates, captured int64
	letters                                   int64
}

func (b *books) counted(ctx context.Context, database, group string) (n counted, err error) {
	err = b.with(ctx, database, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT coalesce(sum(received), 0)::bigint, coalesce(sum(processed), 0)::bigint,
			coalesce(sum(redelivered + republished + conflicting), 0)::bigint, coalesce(sum(captured), 0)::bigint,
			(SELECT count(*) FROM dead_letter) FROM (
				SELECT consumer_group, received, processed, redelivered, republished, conflicting, captured FROM dedup_stat
				UNION ALL SELECT consumer_group, received, processed, redelivered, republished, conflicting, captured
				FROM dedup_stat_rollup WHERE span = 'ever'
			) AS s WHERE consumer_group = $1`, group).
			Scan(&n.received, &n.processed, &n.duplicates, &n.captured, &n.letters)
	})
	if err != nil {
		return n, fmt.Errorf("read dedup_stat: %w", err)
	}
	return n, nil
}

// version is that of the server.
func (b *books) version(ctx context.Context) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := b.own.QueryRow(ctx, `SHOW server_version`).Scan(&text); err != nil {
		return "", fmt.Errorf("version of the database: %w", err)
	}
	return text, nil
}
