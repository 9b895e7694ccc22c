package store

import (
	"iter"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

// Bounds of one statement.
const (
	// maxRows bounds its rows: PostgreSQL takes 65,535 parameters.
	maxRows = 500
	// maxBytes bounds the bytes of records in it, unless a single one is larger:
	// pgx builds the whole message in memory.
	maxBytes = 8 << 20
)

// column passes a column of many rows as one parameter, an array for unnest. The
// text of a statement is then the same for any number of rows, so that pgx finds
// it prepared; and a cell costs no allocation, as it is handed on by its address.
// As a pointer it escapes GORM, which would spell a slice out as a list.
type column[T any] struct{ cells []T }

// columnOf takes one cell of every row.
func columnOf[R, T any](rows []R, cell func(R) T) *column[T] {
	c := &column[T]{make([]T, len(rows))}
	for i, r := range rows {
		c.cells[i] = cell(r)
	}
	return c
}

// Dimensions implements [pgtype.ArrayGetter].
func (c *column[T]) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.cells)), LowerBound: 1}}
}

// Index implements [pgtype.ArrayGetter].
func (c *column[T]) Index(i int) any { return &c.cells[i] }

// IndexType implements [pgtype.ArrayGetter].
func (*column[T]) IndexType() any { return new(T) }

// uuids passes event ids as one parameter.
func uuids(ids []uuid.UUID) *column[pgtype.UUID] { return columnOf(ids, toUUID) }

func toUUID(id uuid.UUID) pgtype.UUID       { return pgtype.UUID{Bytes: id, Valid: true} }
func toText(s string) pgtype.Text           { return pgtype.Text{String: s, Valid: true} }
func toInt(n int) pgtype.Int8               { return pgtype.Int8{Int64: int64(n), Valid: true} }
func toInt4(n int32) pgtype.Int4            { return pgtype.Int4{Int32: n, Valid: true} }
func toInt8(n int64) pgtype.Int8            { return pgtype.Int8{Int64: n, Valid: true} }
func toBool(b bool) pgtype.Bool             { return pgtype.Bool{Bool: b, Valid: true} }
func toTime(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: true} }
func toNumeric(m domain.Money) pgtype.Numeric {
	return pgtype.Numeric{Int: new(big.Int).SetUint64(m.Minor()), Exp: -int32(m.Currency().Exponent()), Valid: true}
}
func orNull(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }
func timeOrNull(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}
func uuidOrNull(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }
func int8OrNull(n int64) pgtype.Int8      { return pgtype.Int8{Int64: n, Valid: n != 0} }

// blob is a cell of bytes: nil is NULL, and no bytes are none.
type blob []byte

// BytesValue implements [pgtype.BytesValuer].
func (b *blob) BytesValue() ([]byte, error) { return *b, nil }

// refs returns the rows by their addresses, which are cheaper to sort.
func refs[T any](rows []T) []*T {
	r := make([]*T, len(rows))
	for i := range rows {
		r[i] = &rows[i]
	}
	return r
}

// chunks cuts rows into what one statement takes, by their number and by the
// bytes of records in them.
func chunks[T any](rows []T, size func(T) int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(rows) > 0 {
			n, bytes := 0, 0
			for n < len(rows) && n < maxRows {
				if bytes += size(rows[n]); n > 0 && bytes > maxBytes {
					break
				}
				n++
			}
			if !yield(rows[:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}
