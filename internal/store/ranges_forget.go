package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// transact runs fn in a transaction on the session that waits for no lock longer than that.
func (r *Ranges) transact(ctx context.Context, wait time.Duration, fn func(*sql.Tx) error) (err error) {
	if r.conn == nil {
		return ErrNotKeeping
	}
	tx, err := r.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // err says what is the matter
		}
	}()
	if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = "+millis(wait)); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// busyOr is domain.ErrBusy for a lock that was not to be had in time, or one that
// another one was waiting for.
func (r *Ranges) busyOr(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case sqlState(err) == lockNotAvail, sqlState(err) == deadlock:
		return fmt.Errorf("%s: %w", what, domain.ErrBusy)
	}
	return r.failed(what, err)
}

// Empty removes every row of a range. It looks under the lock whether an intent of it
// has become unfinished: [domain.ErrMoved]. No batch that is open elsewhere is in its
// way, nor it in theirs.
func (r *Ranges) Empty(ctx context.Context, leaf domain.Leaf, wait time.Duration) error {
	what := "empty " + leaf.Table
	held := 0
	err := r.transact(ctx, wait, func(tx *sql.Tx) error {
		table := quoted(leaf)
		if _, err := tx.ExecContext(ctx, `LOCK TABLE `+table+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		var err error
		if held, _, err = unfinished(ctx, tx, leaf.Span, 1); err != nil || held > 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, `TRUNCATE `+table)
		return err
	})
	if err == nil && held > 0 {
		return fmt.Errorf("%s: %w", what, domain.ErrMoved)
	}
	return r.busyOr(what, err)
}

// Drop removes a range. That takes a lock on the whole of processed_event, which every
// open batch is in the way of; and whoever comes behind has to wait as long as it does. A
// range with a row in it stays: [domain.ErrNotEmpty]. Its fence goes with it.
func (r *Ranges) Drop(ctx context.Context, leaf domain.Leaf, wait time.Duration) error {
	what := "drop " + leaf.Table
	filled := false
	look := func(on queryer) error {
		return on.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+quoted(leaf)+`)`).Scan(&filled)
	}
	rest, err := r.rest(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := look(r.conn); err != nil {
		return r.busyOr(what, err)
	}
	if filled {
		return fmt.Errorf("%s: %w", what, domain.ErrNotEmpty)
	}
	err = r.transact(ctx, wait, func(tx *sql.Tx) error {
		// In the order in which batches lock them: the whole first.
		if _, err := tx.ExecContext(ctx, `LOCK TABLE ONLY processed_event IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
		if err := look(tx); err != nil || filled {
			return err
		}
		steps := []string{`DROP TABLE ` + quoted(leaf)}
		if rest.table != "" && leaf.Ours {
			steps = append(steps, fence(rest, leaf.Span)[:1]...)
		}
		return each(ctx, tx, steps)
	})
	if err == nil && filled {
		return fmt.Errorf("%s: %w", what, domain.ErrNotEmpty)
	}
	return r.busyOr(what, err)
}

// finished is a condition on a row e of processed_event: no intent of it is unfinished.
const finished = `NOT EXISTS (SELECT FROM charge_intent AS i WHERE i.event_id = e.event_id AND i.state IN ` + unfinishedStates + `)`

// keptMax is how far rows of unfinished intents are counted.
const keptMax = 1000

// Overdue counts the rows of a leaf that were written before an instant, up to limit,
// apart from those of unfinished intents, which are counted up to a thousand.
func (r *Ranges) Overdue(ctx context.Context, leaf domain.Leaf, before time.Time, limit int) (domain.Overdue, error) {
	var found domain.Overdue
	if r.conn == nil {
		return found, ErrNotKeeping
	}
	var oldest, since *time.Time
	var first *uuid.UUID
	table := quoted(leaf)
	err := r.conn.QueryRowContext(ctx, `
SELECT count(*), min(processed_at) FROM (
	SELECT processed_at FROM `+table+` AS e WHERE processed_at < $1 AND `+finished+` ORDER BY processed_at LIMIT $2
) AS o`, before, limit).Scan(&found.Rows, &oldest)
	if err == nil {
		err = r.conn.QueryRowContext(ctx, `
SELECT count(*), min(processed_at), (array_agg(event_id ORDER BY processed_at))[1] FROM (
	SELECT e.processed_at, e.event_id FROM charge_intent AS i JOIN `+table+` AS e USING (event_id)
	WHERE i.state IN `+unfinishedStates+` AND e.processed_at < $1 AND i.created_at < $1 LIMIT $2
) AS k`, before, keptMax).Scan(&found.Kept, &since, &first)
	}
	if err != nil {
		return found, r.failed("look for overdue rows in "+leaf.Table, err)
	}
	if oldest != nil {
		found.Oldest = *oldest
	}
	if first != nil && since != nil {
		found.KeptFirst, found.KeptSince = *first, *since
	}
	return found, nil
}

// Delete removes at most limit rows that were written at or after from and before an
// instant, the oldest first, and returns where to go on. Rows of unfinished intents
// stay. Of a leaf that somebody has partitioned again a place names several rows: so each is
// looked at twice. The claim of an event whose row goes this instant waits for it, and is fresh then.
func (r *Ranges) Delete(ctx context.Context, leaf domain.Leaf, from, before time.Time, limit int) (n int, next time.Time, err error) {
	if r.conn == nil {
		return 0, from, ErrNotKeeping
	}
	table := quoted(leaf)
	var last *time.Time
	err = r.conn.QueryRowContext(ctx, `
WITH gone AS (
	DELETE FROM `+table+` AS e WHERE e.ctid = ANY (ARRAY(
		SELECT e.ctid FROM `+table+` AS e WHERE e.processed_at >= $1 AND e.processed_at < $2 AND `+finished+`
		ORDER BY e.processed_at LIMIT $3))
		AND e.processed_at >= $1 AND e.processed_at < $2 AND `+finished+`
	RETURNING e.processed_at
)
SELECT count(*), max(processed_at) FROM gone`, from, before, limit).Scan(&n, &last)
	if err != nil {
		return 0, from, r.failed("delete from "+leaf.Table, err)
	}
	if last == nil {
		return n, from, nil
	}
	return n, *last, nil
}
