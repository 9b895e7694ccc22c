package domain

import "time"

// RetentionMode is how processed_event forgets.
type RetentionMode string

// The two modes. Both work on the same table.
const (
	// RetainByPartition empties whole ranges of event ids, by the time in the id.
	RetainByPartition RetentionMode = "partition"
	// RetainByDelete deletes rows in bounded batches, by the time they were written.
	RetainByDelete RetentionMode = "delete"
)

// RangeState is how a range of event ids stands to retention.
type RangeState string

// States of a range.
const (
	RangeAhead   RangeState = "ahead"   // begins in the future
	RangeCurrent RangeState = "current" // today's
	RangeKept    RangeState = "kept"    // behind us, within the retention
	RangeDue     RangeState = "due"     // wholly older than the retention, and not emptied yet: Why says why
	RangeBlocked RangeState = "blocked" // due, or rows of it are in delete mode, and something unfinished or unread reaches into it: Why says what
	RangeEmptied RangeState = "emptied" // due and without rows; dropped when a short lock allows
	RangeDropped RangeState = "dropped" // gone since this turn
	RangeMissing RangeState = "missing" // not attached: ids of it go to the default partition; Why says why
	RangeForeign RangeState = "foreign" // not made by us: cleaned row by row, as the default partition is
)

// Span is a range of event ids by the time in them: From inclusive, To exclusive,
// in UTC and whole milliseconds.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// RetentionRange is one range as a turn of retention left it.
type RetentionRange struct {
	Span
	Table string     `json:"table"`
	Rows  int64      `json:"rows"`  // the statistics' estimate
	Bytes int64      `json:"bytes"` // with its indexes
	State RangeState `json:"state"`
	Why   string     `json:"why,omitempty"`
}

// RetentionRest is what lies outside of all ranges: the default partition.
type RetentionRest struct {
	Rows    int64  `json:"rows"` // the statistics' estimate
	Bytes   int64  `json:"bytes"`
	Blocked bool   `json:"blocked"` // rows are due, and something unfinished or unread keeps them
	Why     string `json:"why,omitempty"`
}

// RetentionNext is the range that is due next.
type RetentionNext struct {
	Span
	At time.Time `json:"at"` // when it is due; it may be in the past
}

// ChoreReport is what one of the other chores did in a turn.
type ChoreReport struct {
	Name    string        `json:"name"`
	Removed int64         `json:"removed"`
	Took    time.Duration `json:"took"` // nanoseconds
	Error   string        `json:"error,omitempty"`
}

// RetentionReport is what a turn of retention found and did.
type RetentionReport struct {
	StartedAt    time.Time     `json:"started_at"`
	FinishedAt   time.Time     `json:"finished_at"`
	SucceededAt  time.Time     `json:"succeeded_at,omitzero"`  // end of the latest turn without an error; zero: none yet
	BlockedSince time.Time     `json:"blocked_since,omitzero"` // since when the oldest blocked rows have been due; zero: nothing is blocked
	Instance     string        `json:"instance"`
	DryRun       bool          `json:"dry_run"`
	Mode         RetentionMode `json:"mode"`
	Width        string        `json:"width"`     // day, week or month
	Retention    time.Duration `json:"retention"` // nanoseconds; for how long the turn kept
	// Wanted is for how long the instance is to keep, where that is shorter than what was kept
	// so far and nobody has confirmed it: the turn kept for as long as before. Nanoseconds; zero otherwise.
	Wanted time.Duration `json:"wanted,omitzero"`
	// Floor is the shortest keeping that needs no confirmation, in nanoseconds, and FloorAt when a
	// turn last kept for that, or somebody confirmed it.
	Floor   time.Duration `json:"floor,omitzero"`
	FloorAt time.Time     `json:"floor_at,omitzero"`

	Ranges   []RetentionRange `json:"ranges"` // by time; those that are missing and those that were dropped included
	Default  RetentionRest    `json:"default"`
	Attached int              `json:"attached"` // ranges, in this turn; by a dry run: that would be
	Emptied  int              `json:"emptied"`  // likewise
	Dropped  int              `json:"dropped"`  // likewise
	Moved    int64            `json:"moved"`    // rows, out of the default partition into ranges
	Removed  int64            `json:"removed"`  // rows of emptied ranges, by estimate
	Deleted  int64            `json:"deleted"`  // rows, one by one
	Next     *RetentionNext   `json:"next"`     // nil where there is no range
	Chores   []ChoreReport    `json:"chores"`
	Error    string           `json:"error,omitempty"` // what kept the turn from doing its work
}

// Unread is what a group has not consumed yet of a partition.
type Unread struct {
	Group     string
	Topic     string
	Partition int32
	Records   int64 // that many, or more
}
