package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// selectLeftovers are the fences around ranges that are not there, as what an ALTER TABLE
// does to take them down; NULL where there are none.
const selectLeftovers = `
SELECT string_agg('DROP CONSTRAINT IF EXISTS ' || quote_ident(f.conname), ', ') FROM pg_constraint AS f
WHERE f.conrelid = $1::regclass AND f.contype = 'c' AND f.conname ~ '^processed_not_[0-9]{8}_[0-9]{8}$'
	AND NOT EXISTS (
		SELECT FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS o ON o.oid = i.inhparent
		WHERE i.inhparent = 'processed_event'::regclass AND c.relnamespace = o.relnamespace
			AND c.relname = replace(f.conname, 'processed_not_', 'processed_event_'))`

// Clear takes back what an instance has left that ended while it attached a range. For as
// long as that stands every claim of the span is refused, and once its day has come, or where
// rows are deleted one by one, nobody attaches the range any more. [domain.ErrBusy] when it
// would take a longer wait. Then it puts up the fences that are missing, and tells every session of the ranges that have come.
func (r *Ranges) Clear(ctx context.Context, wait time.Duration) error {
	rest, err := r.rest(ctx)
	if err != nil {
		return err
	}
	if rest.table != "" {
		if err := r.clear(ctx, rest, wait); err != nil {
			return err
		}
		if err := r.refence(ctx, rest, wait); err != nil {
			return err
		}
	}
	return r.tell(ctx, wait)
}

func (r *Ranges) clear(ctx context.Context, rest rest, wait time.Duration) error {
	const what = "clear the default partition"
	var changes sql.NullString
	if err := r.conn.QueryRowContext(ctx, selectLeftovers, rest.table).Scan(&changes); err != nil {
		return r.failed(what, err)
	}
	if !changes.Valid {
		return nil
	}
	return r.busyOr(what, r.transact(ctx, wait, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`ALTER TABLE %s %s`, rest.table, changes.String))
		return err
	}))
}

// Now returns the database's time.
func (r *Ranges) Now(ctx context.Context) (now time.Time, err error) {
	if r.conn == nil {
		return now, ErrNotKeeping
	}
	if err := r.conn.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, r.failed("ask for the time", err)
	}
	return now, nil
}
