package store

import (
	"math/bits"

	"github.com/jackc/pgx/v5/pgtype"
)

// claimRow is a row of processed_event on its way in. No column may carry a
// default tag: GORM would then read results back by position and tell the wrong
// rows fresh. All that is read back is the id; the other columns of RETURNING *
// are passed over.
type claimRow struct {
	EventID         pgtype.UUID `gorm:"primaryKey;type:uuid"`
	ConsumerGroup   string      `gorm:"->:false;<-:create"`
	SourceTopic     string      `gorm:"->:false;<-:create"`
	SourcePartition int32       `gorm:"->:false;<-:create"`
	SourceOffset    int64       `gorm:"->:false;<-:create"`
	Fingerprint     []byte      `gorm:"->:false;<-:create"`
}

func (claimRow) TableName() string { return "processed_event" }

// steps returns the number of rows that a claim of n is filled up to: the next of
// 1, 2, 3, 4, 6, 8, 12 … 384, 500. The text of a list of rows depends on their
// number, and each connection keeps each text prepared, on both sides: so there
// are 18 of them at most, and not 500.
func steps(n int) int {
	if n <= 2 {
		return n
	}
	top := 1 << bits.Len(uint(n-1)) // the power of two at or above n
	if middle := top / 4 * 3; n <= middle {
		top = middle
	}
	return min(top, maxRows)
}
