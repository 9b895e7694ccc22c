package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// selectLeftovers are the constraints by which a default partition says that it holds
// nothing of a span, as what an ALTER TABLE does to take them back; NULL where there are none.
const selectLeftovers = `
SELECT string_agg('DROP CONSTRAINT IF EXISTS ' || quote_ident(conname), ', ') FROM pg_constraint
WHERE conrelid = $1::regclass AND contype = 'c' AND conname ~ '^processed_not_[0-9]{8}_[0-9]{8}$'`

// Clear takes back what an instance has left that ended while it attached a range. For as
// long as that stands every claim of the span is refused, and once its day has come, or where
// rows are deleted one by one, nobody attaches the range any more. [domain.ErrBusy] when it
// would take a longer wait.
func (r *Ranges) Clear(ctx context.Context, wait time.Duration) error {
	const what = "clear the default partition"
	rest, err := r.rest(ctx)
	if err != nil || rest.table == "" {
		return err
	}
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
