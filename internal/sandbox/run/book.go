package run

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queryTimeout bounds one look at the database, that of a large run included.
const queryTimeout = 60 * time.Second

// books reads the service's tables from outside.
type books struct {
	pool  *pgxpool.Pool
	group string
}

func openBooks(ctx context.Context, url, group string) (*books, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return &books{pool: pool, group: group}, nil
}

func (b *books) close() { b.pool.Close() }

// checkEmpty refuses a database that has charges of another run in it: they
// could not be told from ours.
func (b *books) checkEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	for _, table := range []string{"processed_event", "charge", "charge_intent", "dead_letter"} {
		var exists, filled bool
		if err := b.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table).Scan(&exists); err != nil {
			return fmt.Errorf("look for table %s: %w", table, err)
		}
		if !exists {
			continue
		}
		if err := b.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+pgx.Identifier{table}.Sanitize()+`)`).Scan(&filled); err != nil {
			return fmt.Errorf("look into table %s: %w", table, err)
		}
		if filled {
			return fmt.Errorf("the database has rows in %s already: give an empty one", table)
		}
	}
	return nil
}

// unfinished returns the events whose charge is begun and not finished, with the states of their intents.
func (b *books) unfinished(ctx context.Context) (map[uuid.UUID]string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	rows, err := b.pool.Query(ctx, `SELECT event_id, state FROM charge_intent WHERE state NOT IN ('parked', 'held')`)
	if err != nil {
		return nil, fmt.Errorf("read the unfinished intents: %w", err)
	}
	events := make(map[uuid.UUID]string)
	for rows.Next() {
		var id uuid.UUID
		var state string
		if err := rows.Scan(&id, &state); err != nil {
			return nil, fmt.Errorf("read the unfinished intents: %w", err)
		}
		events[id] = state
	}
	return events, rows.Err()
}

// intents counts the intents.
func (b *books) intents(ctx context.Context) (map[IntentKey]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return countIntents(ctx, b.pool)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func countIntents(ctx context.Context, q querier) (map[IntentKey]int64, error) {
	rows, err := q.Query(ctx, `SELECT state, claimed, count(*) FROM charge_intent GROUP BY state, claimed`)
	if err != nil {
		return nil, fmt.Errorf("count intents: %w", err)
	}
	counts := make(map[IntentKey]int64)
	for rows.Next() {
		var k IntentKey
		var n int64
		if err := rows.Scan(&k.State, &k.Claimed, &n); err != nil {
			return nil, fmt.Errorf("count intents: %w", err)
		}
		counts[k] = n
	}
	return counts, rows.Err()
}

// read returns everything, as of one instant.
func (b *books) read(ctx context.Context) (Book, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var book Book
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, b.pool, options, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT count(*) FROM processed_event WHERE consumer_group = $1`, b.group).Scan(&book.Processed)
		if err != nil {
			return fmt.Errorf("count processed_event: %w", err)
		}
		var errs [6]error
		book.Charges, errs[0] = readCharges(ctx, tx)
		book.Letters, errs[1] = readLetters(ctx, tx)
		book.Intents, errs[2] = countIntents(ctx, tx)
		book.Counters, errs[3] = readCounters(ctx, tx, b.group)
		book.Delays, errs[4] = readDelays(ctx, tx, b.group)
		book.Log, errs[5] = readLog(ctx, tx, b.group)
		return errors.Join(errs[:]...)
	})
	return book, err
}

func readCharges(ctx context.Context, q querier) (map[uuid.UUID]Charge, error) {
	rows, err := q.Query(ctx, `SELECT event_id, order_id, amount::text, currency, status, attempts FROM charge`)
	if err != nil {
		return nil, fmt.Errorf("read charge: %w", err)
	}
	defer rows.Close()
	charges := make(map[uuid.UUID]Charge)
	for rows.Next() {
		var id uuid.UUID
		var c Charge
		var amount string
		if err := rows.Scan(&id, &c.OrderID, &amount, &c.Currency, &c.Status, &c.Attempts); err != nil {
			return nil, fmt.Errorf("read charge: %w", err)
		}
		var ok bool
		if c.Amount, ok = new(big.Rat).SetString(amount); !ok {
			return nil, fmt.Errorf("read charge %s: amount %q is no number", id, amount)
		}
		charges[id] = c
	}
	return charges, rows.Err()
}

func readLetters(ctx context.Context, q querier) ([]Letter, error) {
	rows, err := q.Query(ctx, `SELECT coalesce(event_id, $1), reason, state,
		format('%s/%s@%s', topic, partition, "offset") FROM dead_letter ORDER BY id`, uuid.Nil)
	if err != nil {
		return nil, fmt.Errorf("read dead_letter: %w", err)
	}
	defer rows.Close()
	var letters []Letter
	for rows.Next() {
		var l Letter
		if err := rows.Scan(&l.EventID, &l.Reason, &l.State, &l.Source); err != nil {
			return nil, fmt.Errorf("read dead_letter: %w", err)
		}
		letters = append(letters, l)
	}
	return letters, rows.Err()
}

// countedColumns are the counters of a group: those of the last hours lie by the minute in dedup_stat, all
// before in one row per partition.
const countedColumns = "consumer_group, received, processed, recovered, redelivered, republished, conflicting, invalid, " +
	"captured, declined, duplicate_order, discarded"

func readCounters(ctx context.Context, q querier, group string) (c Counters, err error) {
	err = q.QueryRow(ctx, `SELECT
		coalesce(sum(received), 0)::bigint, coalesce(sum(processed), 0)::bigint, coalesce(sum(recovered), 0)::bigint,
		coalesce(sum(redelivered), 0)::bigint, coalesce(sum(republished), 0)::bigint, coalesce(sum(conflicting), 0)::bigint,
		coalesce(sum(invalid), 0)::bigint, coalesce(sum(captured), 0)::bigint, coalesce(sum(declined), 0)::bigint,
		coalesce(sum(duplicate_order), 0)::bigint, coalesce(sum(discarded), 0)::bigint
		FROM (SELECT `+countedColumns+` FROM dedup_stat UNION ALL
			SELECT `+countedColumns+` FROM dedup_stat_rollup WHERE span = 'ever') AS history
		WHERE consumer_group = $1`, group).Scan(
		&c.Received, &c.Processed, &c.Recovered, &c.Redelivered, &c.Republished, &c.Conflicting,
		&c.Invalid, &c.Captured, &c.Declined, &c.DuplicateOrder, &c.Discard)
	if err != nil {
		return c, fmt.Errorf("sum dedup_stat: %w", err)
	}
	return c, nil
}
