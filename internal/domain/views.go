package domain

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Archive is the reading side of the store, for people and their tools. It never
// waits for the flow and never changes a thing.
type Archive interface {
	// DedupStats sums the counters since an instant, by whole minutes within the last
	// week and by whole hours before, as far back as they are kept; the zero time means
	// all that was ever counted.
	DedupStats(ctx context.Context, group string, since time.Time) (DedupStats, error)
	// DedupSeries returns the counters over time since an instant, all partitions
	// together; see [SeriesStart] for how far it reaches back.
	DedupSeries(ctx context.Context, group string, since time.Time, step SeriesStep) (DedupSeries, error)
	// Retention returns the report of the latest turn of retention, of whatever
	// instance; false before the first one.
	Retention(ctx context.Context) (RetentionReport, bool, error)
	// Event tells what is known of an event; false when it was never seen.
	Event(ctx context.Context, group string, id uuid.UUID) (EventStory, bool, error)
	// Charges lists final charges, newest first.
	Charges(ctx context.Context, filter ChargeFilter) (Page[Charge], error)
	// Letters lists dead letters, newest first unless the filter says otherwise.
	Letters(ctx context.Context, filter LetterFilter) (Page[Letter], error)
	// Letter returns one dead letter; false when there is none.
	Letter(ctx context.Context, id int64) (Letter, bool, error)
	// Duplicates lists the log of duplicates, newest first.
	Duplicates(ctx context.Context, filter DuplicateFilter) (Page[Duplicate], error)
	// Actions returns what operators did to dead letters, newest first, at most
	// [MaxActions].
	Actions(ctx context.Context, letters []int64) ([]Action, error)
}

// DedupStats are the counters of a window, and what stands open now.
type DedupStats struct {
	Total      WindowStats
	Partitions []PartitionStats // by topic and partition
	Table      ProcessedEventTable
}

// WindowStats are counters over a window. Unfinished and Parked are rows now,
// whatever the window.
type WindowStats struct {
	Counters
	Unfinished int64 // claimed intents that time will finish
	Parked     int64 // claimed intents that wait for an operator
}

// PartitionStats are the stats of one partition.
type PartitionStats struct {
	Topic     string
	Partition int32
	WindowStats
}

// ProcessedEventTable describes the deduplication table.
type ProcessedEventTable struct {
	Rows       int64      // the planner's estimate; -1 before the first analyze
	Oldest     *time.Time // processed_at of the oldest row
	Partitions int
	TableBytes int64 // on disk, without indexes
	IndexBytes int64
	// OldestEvent is the time in the oldest id of version 7: of the oldest range that
	// has rows, or of the default partition where none has.
	OldestEvent *time.Time
	Default     DefaultPartition
}

// DefaultPartition describes the partition of the ids that lie in no range.
type DefaultPartition struct {
	Rows  int64 // the planner's estimate; -1 before the first analyze
	Bytes int64 // on disk, with indexes
}

// EventStory is what is known of one event; [EventStory.Timeline] tells it in the
// order of time.
type EventStory struct {
	EventID     uuid.UUID
	Group       string     // whose claim and duplicates these are
	Sighting    *Sighting  // nil when processed_event has forgotten it
	ProcessedAt *time.Time // nil likewise
	Charge      *Charge    // its final charge
	Intent      *Intent    // its unfinished charge
	Letters     []Letter   // its dead letters, newest first, at most 20, without bytes
	Actions     []Action   // what operators did to them, newest first, at most [MaxActions]

	// Duplicates are its latest in the log, newest first, at most [MaxStoryDuplicates];
	// MoreDuplicates says that the log holds more of them.
	Duplicates     []Duplicate
	MoreDuplicates bool
	LogBegins      time.Time // when the oldest duplicate that the log still holds was seen; zero: it is empty
	LogCut         bool      // the log may have held older ones
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T
	Next  string // opaque cursor of the next page; empty at the end
}

// MaxActions bounds the audit trail that is shown at a time.
const MaxActions = 100

// Bounds of a page.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 500
)

// ChargeFilter narrows a list of charges. Zero values do not filter.
type ChargeFilter struct {
	OrderID int64
	Status  ChargeStatus
	Cursor  string
	Limit   int // 1 to MaxPageLimit
}

// LetterFilter narrows a list of dead letters. Zero values do not filter.
type LetterFilter struct {
	Reason  Reason
	State   LetterState
	EventID uuid.UUID
	Since   time.Time // first parked then or later
	Until   time.Time // first parked before
	Oldest  bool      // the oldest first; a cursor belongs to its order
	Cursor  string
	Limit   int // 1 to MaxPageLimit
}

// DuplicateFilter narrows the log of duplicates. Zero values do not filter, but for
// Group.
type DuplicateFilter struct {
	Group   string
	EventID uuid.UUID
	Kind    DuplicateKind
	Cursor  string
	Limit   int // 1 to MaxPageLimit
}
