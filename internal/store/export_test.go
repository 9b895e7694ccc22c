package store

import (
	"context"
	"database/sql"
	"iter"

	"example.com/billing/internal/domain"
)

// MaxRows bounds the rows of one statement.
const MaxRows = maxRows

// Steps is the length that a claim's list is filled up to.
func Steps(n int) int { return steps(n) }

// Chunks cuts rows into what one statement takes.
func Chunks[T any](rows []T, size func(T) int) iter.Seq[[]T] { return chunks(rows, size) }

// Pools returns the connections of the store by their names, so that a test can
// ask a session for its settings.
func (s *Store) Pools() map[string]*sql.DB {
	return map[string]*sql.DB{"main": s.pools[0], "side": s.pools[1], "archive": s.pools[2]}
}

// Chores returns the chores on the side pool.
func (s *Store) Chores() []*Chore {
	return choresOn(func(ctx context.Context, _ string, fn func(context.Context, session) error) error {
		return fn(ctx, s.pools[1])
	})
}

// SetScanMax sets up to which size in bytes the default partition is looked through.
func (r *Ranges) SetScanMax(bytes int64) { r.scanMax = bytes }

// DescribeAfter describes processed_event after something has happened to the leaves
// that were listed.
func (s *Store) DescribeAfter(ctx context.Context, happens func()) (domain.ProcessedEventTable, error) {
	db := s.archive.WithContext(ctx)
	leaves, err := listLeaves(db)
	if err != nil {
		return domain.ProcessedEventTable{}, err
	}
	happens()
	return describe(db, leaves)
}

// MinCopied is how many rows are copied, and not inserted.
const MinCopied = minCopied

// CopyWithin copies charges on a connection, as within a transaction, whether or not one is open there.
func CopyWithin(ctx context.Context, conn *sql.Conn, charges []domain.Charge) error {
	return copyRows(ctx, conn, true, chargeTable(), len(charges), cellsOf(refs(charges)))
}
