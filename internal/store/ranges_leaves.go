package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/billing/internal/domain"
)

// leafDay is how the name of a range tells its days: processed_event_20261129_20261130.
const leafDay = "20060102"

// selectLeaves reads the tables of processed_event from the catalog; their rows by the
// statistics' count, or by the planner's where that has none.
const selectLeaves = `
SELECT c.relname, n.nspname, c.relnamespace = o.relnamespace, pg_get_expr(c.relpartbound, c.oid),
	coalesce(nullif(pg_stat_get_live_tuples(c.oid), 0), greatest(c.reltuples, 0)::bigint),
	coalesce(pg_total_relation_size(c.oid), 0), coalesce(pg_relation_size(c.oid), 0) = 0
FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_class AS o ON o.oid = i.inhparent
WHERE i.inhparent = 'processed_event'::regclass
ORDER BY c.relname`

// Leaves returns the tables that processed_event is made of.
func (r *Ranges) Leaves(ctx context.Context) ([]domain.Leaf, error) {
	leaves, err := r.leaves(ctx)
	if err != nil {
		return nil, r.failed("list the ranges of processed_event", err)
	}
	return leaves, nil
}

func (r *Ranges) leaves(ctx context.Context) (leaves []domain.Leaf, err error) {
	if r.conn == nil {
		return nil, ErrNotKeeping
	}
	rows, err := r.conn.QueryContext(ctx, selectLeaves)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var leaf domain.Leaf
		var beside bool
		var bound string
		if err := rows.Scan(&leaf.Table, &leaf.Schema, &beside, &bound, &leaf.Rows, &leaf.Bytes, &leaf.Empty); err != nil {
			return nil, err
		}
		if err := readBound(&leaf, bound); err != nil {
			return nil, err
		}
		leaf.Ours = leaf.Ours && beside
		if leaf.Empty {
			leaf.Rows = 0 // the statistics are late
		}
		leaves = append(leaves, leaf)
	}
	return leaves, rows.Err()
}

// boundary is one bound of a partition as the catalog writes it.
const boundary = `(?:'([0-9a-f-]{36})'|MINVALUE|MAXVALUE)`

// readBound reads what a leaf holds. Bounds that are no whole milliseconds are widened
// to some: such a leaf is not one of ours.
func readBound(leaf *domain.Leaf, bound string) error {
	if bound == "DEFAULT" {
		leaf.Default = true
		return nil
	}
	m := regexp.MustCompile(`^FOR VALUES FROM \(` + boundary + `\) TO \(` + boundary + `\)$`).FindStringSubmatch(bound)
	if m == nil {
		return fmt.Errorf("partition %s: bound %q", leaf.Table, bound)
	}
	leaf.Span = domain.Span{From: time.UnixMilli(0).UTC(), To: endOfTime()}
	exact := true
	if m[1] != "" {
		leaf.Span.From, exact = instantOf(m[1])
	}
	if m[2] != "" {
		to, lowest := instantOf(m[2])
		if !lowest {
			to = to.Add(time.Millisecond)
		}
		leaf.Span.To, exact = to, exact && lowest
	}
	leaf.Ours = exact && leaf.Table == leafName(leaf.Span)
	return nil
}

// endOfTime is behind every range; a later one cannot be written down everywhere.
func endOfTime() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

func instantOf(bound string) (time.Time, bool) {
	id, err := uuid.Parse(bound)
	if err != nil {
		return time.UnixMilli(0).UTC(), false
	}
	at, lowest := domain.InstantOf(id)
	if end := endOfTime(); at.After(end) {
		return end, false
	}
	return at, lowest
}

// leafName names a range of whole days; of another one it names no table that it could be.
func leafName(s domain.Span) string {
	for _, at := range []time.Time{s.From, s.To} {
		if !at.Equal(at.Truncate(24 * time.Hour)) {
			return ""
		}
	}
	return "processed_event_" + s.From.UTC().Format(leafDay) + "_" + s.To.UTC().Format(leafDay)
}

// quoted is the table of a leaf, for a statement. Somebody else's may be in a schema that is
// not that of processed_event.
func quoted(leaf domain.Leaf) string { return pgx.Identifier{leaf.Schema, leaf.Table}.Sanitize() }

const unfinishedStates = `('waiting', 'calling', 'unknown', 'answered')`

const selectUnfinished = `
SELECT event_id FROM charge_intent WHERE event_id >= $1 AND event_id < $2 AND state IN ` + unfinishedStates + `
ORDER BY event_id LIMIT $3`

// Unfinished counts the intents of a span that time will finish, of any group, up to
// limit, and names the first.
func (r *Ranges) Unfinished(ctx context.Context, span domain.Span, limit int) (n int, first uuid.UUID, err error) {
	if r.conn == nil {
		return 0, first, ErrNotKeeping
	}
	n, first, err = unfinished(ctx, r.conn, span, limit)
	if err != nil {
		return 0, first, r.failed("count unfinished intents", err)
	}
	return n, first, nil
}

func unfinished(ctx context.Context, on queryer, span domain.Span, limit int) (n int, first uuid.UUID, err error) {
	from, to := span.Bounds()
	var found *uuid.UUID
	err = on.QueryRowContext(ctx, `SELECT count(*), (array_agg(event_id ORDER BY event_id))[1] FROM (`+selectUnfinished+`) AS i`,
		from, to, limit).Scan(&n, &found)
	if found != nil {
		first = *found
	}
	return n, first, err
}
