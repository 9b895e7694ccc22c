package domain

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Evidence is what the store holds about some records and their events, as of
// one instant. Intents and letters come without the bytes of their records.
type Evidence struct {
	Sightings map[uuid.UUID]Sighting // rows of processed_event of one group
	Charges   map[uuid.UUID]Charge
	Intents   map[uuid.UUID]*Intent
	Letters   map[Coordinates]Letter
}

// Mark is a place in a table that is read in the order of time: behind the row
// of this instant and event. The zero value is the beginning.
type Mark struct {
	At time.Time
	ID uuid.UUID
}

// Witness is the store's side of an audit: it reads in batches by index, keeps no
// snapshot from one to the next, and changes nothing.
type Witness interface {
	// Evidence returns what is known of these events and coordinates.
	Evidence(ctx context.Context, group string, ids []uuid.UUID, at []Coordinates) (Evidence, error)
	// ChargesAfter returns at most limit charges behind a mark, oldest first by
	// the time they were settled, and the mark to go on from.
	ChargesAfter(ctx context.Context, mark Mark, limit int) ([]Charge, Mark, error)
	// SightingsAfter returns at most limit rows of processed_event of a group behind
	// a mark, oldest first by the time they were written, and the mark to go on from.
	SightingsAfter(ctx context.Context, group string, mark Mark, limit int) ([]Sighting, Mark, error)
	// IntentsAfter returns at most limit intents in the order of their event ids.
	IntentsAfter(ctx context.Context, id uuid.UUID, limit int) ([]Intent, error)
	// CapturesOf returns how many captured charges each of the orders has, and
	// which charge claims it, where any does.
	CapturesOf(ctx context.Context, orders []int64) (map[int64]int, map[int64]Charge, error)
	// DedupStats sums the counters since an instant; the zero time means all.
	DedupStats(ctx context.Context, group string, since time.Time) (DedupStats, error)
}

// Extent is what there is of one partition of a topic.
type Extent struct {
	Partition int32
	Start     int64 // first offset that is still there
	End       int64 // behind the last record that a read-committed reader may see
	Committed int64 // the group's position; -1 where it has none
}
