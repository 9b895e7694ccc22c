package retention

import (
	"context"
	"time"

	"example.com/billing/internal/domain"
)

// Reader tells what has been consumed.
type Reader interface {
	// UnreadBefore returns the partitions with records of before an instant that a
	// group has not consumed: none, when everything of before it is consumed. An error
	// means that it is not known; nothing is forgotten then. It ends within a
	// bounded time.
	UnreadBefore(ctx context.Context, at time.Time) ([]domain.Unread, error)
}

// Chore forgets something else, in each turn, after the ranges. It bounds its rows by
// statement and its time by turn. Its error is reported and keeps no other from working.
type Chore interface {
	// Name is short and stable: it names the chore in reports and metrics.
	Name() string
	// Run removes what is too old now and returns how many rows went.
	Run(ctx context.Context, now time.Time) (removed int64, err error)
}
