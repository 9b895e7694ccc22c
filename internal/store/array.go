package store

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// array passes a slice as one parameter. As a struct it escapes GORM, which
// would spell a slice out as a list of parameters.
func array[T any](s []T) pgtype.Array[T] {
	return pgtype.Array[T]{
		Elements: s, Valid: true,
		Dims: []pgtype.ArrayDimension{{Length: int32(len(s)), LowerBound: 1}},
	}
}

// uuids passes event ids as one parameter.
func uuids(ids []uuid.UUID) pgtype.Array[pgtype.UUID] {
	s := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		s[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	return array(s)
}
