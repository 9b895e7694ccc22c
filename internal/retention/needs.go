package retention

import (
	"context"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// Place is what makes one of all instances the one that forgets. After an error of
// it the place may be lost.
type Place interface {
	// Lead reports whether this instance is the one, and makes it so where nobody else is.
	Lead(ctx context.Context) (bool, error)
	// Begin takes the lock of a turn: false while another one is under way. Whoever holds
	// it already goes on holding it.
	Begin(ctx context.Context) (bool, error)
	// End frees the lock of a turn.
	End(ctx context.Context) error
	// Resign gives the place up.
	Resign() error
	// Latest returns the report that was saved last, of whatever instance; false before the first.
	Latest(ctx context.Context) (domain.RetentionReport, bool, error)
	// Save keeps the report of a turn for every instance to show.
	Save(ctx context.Context, report domain.RetentionReport) error
}

// Table is processed_event. Its methods wait for locks no longer than they are told, and
// return [domain.ErrBusy] then.
type Table interface {
	// Leaves returns the tables that it is made of.
	Leaves(ctx context.Context) ([]domain.Leaf, error)
	// Now returns the database's time.
	Now(ctx context.Context) (time.Time, error)
	// Clear takes back what a turn that was broken off has left in the way of claims, and
	// tells every session of the ranges that have come since it was called last.
	Clear(ctx context.Context, wait time.Duration) error
	// Lying counts the rows of the default partition that belong to a span, up to limit.
	Lying(ctx context.Context, span domain.Span, limit int) (int, error)
	// Attach makes a range of the span and moves what the default partition holds of it,
	// in one transaction: at no moment does a claim miss a row. [domain.ErrCrowded] when
	// that is more than limit, or the default partition is too large to be looked through.
	Attach(ctx context.Context, span domain.Span, limit int, wait time.Duration) (moved int, err error)
	// Unfinished counts the intents of a span that time will finish, up to limit, and
	// names the first.
	Unfinished(ctx context.Context, span domain.Span, limit int) (n int, first uuid.UUID, err error)
	// Empty removes every row of a range, unless an intent of it is unfinished:
	// [domain.ErrMoved] then.
	Empty(ctx context.Context, leaf domain.Leaf, wait time.Duration) error
	// Drop removes a range, unless it holds a row: [domain.ErrNotEmpty] then.
	Drop(ctx context.Context, leaf domain.Leaf, wait time.Duration) error
	// Overdue counts the rows of a leaf that were written before an instant, up to limit,
	// apart from those of unfinished intents.
	Overdue(ctx context.Context, leaf domain.Leaf, before time.Time, limit int) (domain.Overdue, error)
	// Delete removes at most limit rows that were written at or after from and before an
	// instant, the oldest first, and returns where to go on; rows of
	// unfinished intents stay.
	Delete(ctx context.Context, leaf domain.Leaf, from, before time.Time, limit int) (n int, next time.Time, err error)
}

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
