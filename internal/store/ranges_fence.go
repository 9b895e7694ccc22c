package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/billing/internal/domain"
)

// A fence is a constraint on the default partition: nothing of a range may lie there. It
// says what PostgreSQL says by itself of any default partition, but that is not to be
// relied on. A session that makes itself a list of the ranges at the moment at which one is
// attached may keep the list without it, and count the news of it as heard: PostgreSQL's
// RelationBuildPartitionDesc takes note of no invalidation that arrives meanwhile (in 15.18
// and 18.4). It takes a session that is new, or whose caches were flushed. From then on it writes rows of that range into the default partition, whose
// own constraint it derives from the same list, beside rows of the same events in the
// range: there is no deduplication any more. A constraint of the table itself is read under
// the table's lock, and never missed.
//
// A claim that is refused by it is run again, on another session: see [distrust]. Sessions
// that only read hear of the range in the next turn, by tell.

// fenceName names the fence of a range by that of its table.
func fenceName(leaf string) string { return strings.Replace(leaf, "event", "not", 1) }

// fence takes down what fence there is around a span, and puts up another. It is valid for
// rows that come; those that are there have been moved, or are still to be looked at.
func fence(rest rest, span domain.Span) []string {
	return []string{
		fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s`, rest.table, fenceName(leafName(span))),
		fmt.Sprintf(`ALTER TABLE %s %s`, rest.table, addFence(span)),
	}
}

// addFence is what an ALTER TABLE does to put a fence up.
func addFence(span domain.Span) string {
	from, to := span.Bounds()
	return fmt.Sprintf(`ADD CONSTRAINT %s CHECK (event_id < '%s' OR event_id >= '%s') NOT VALID`, fenceName(leafName(span)), from, to)
}

// selectUntold says whether a range has come since sessions were told the last time. That
// is on record as the transaction that has written the column's row of the catalog.
const selectUntold = `
SELECT EXISTS (
	SELECT FROM pg_inherits AS i JOIN pg_partitioned_table AS p ON p.partrelid = i.inhparent AND p.partdefid <> i.inhrelid
	JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = 'event_id'
	WHERE i.inhparent = 'processed_event'::regclass AND age(i.xmin) < age(a.xmin))`

// tell makes every session list the ranges anew. A turn after they were attached no
// statement is under way any more that has begun before. It says the most harmless thing
// about processed_event that there is to be said: n_distinct is for tables with rows of
// their own, and a partitioned one has none. Nothing but ANALYZE and the like is kept
// waiting, nor waited for: then the next turn does it.
func (r *Ranges) tell(ctx context.Context, wait time.Duration) error {
	const what = "tell of new ranges"
	var untold bool
	if err := r.conn.QueryRowContext(ctx, selectUntold).Scan(&untold); err != nil {
		return r.failed(what, err)
	}
	if !untold {
		return nil
	}
	return r.unhurried(ctx, what, wait, `ALTER TABLE ONLY processed_event ALTER COLUMN event_id RESET (n_distinct)`)
}

// unhurried alters a table, where that can be left to another turn: when somebody is in the way, or the
// table is not ours. Then somebody else attaches its ranges, and rows are deleted one by one.
func (r *Ranges) unhurried(ctx context.Context, what string, wait time.Duration, alter string) error {
	err := r.transact(ctx, wait, func(tx *sql.Tx) error { return each(ctx, tx, []string{alter}) })
	if sqlState(err) == notPermitted {
		return nil
	}
	if err = r.busyOr(what, err); errors.Is(err, domain.ErrBusy) {
		return nil
	}
	return err
}
