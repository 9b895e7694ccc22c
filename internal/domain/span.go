package domain

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Errors of the ranges of processed_event.
var (
	// ErrBusy: somebody holds a lock that was not to be had in time. Try another time.
	ErrBusy = errors.New("somebody holds a lock on it")
	// ErrCrowded: the default partition holds too many rows for them to be moved, or to
	// be looked through while everybody waits.
	ErrCrowded = errors.New("too much lies in the default partition")
	// ErrNotEmpty: there are rows in it.
	ErrNotEmpty = errors.New("it holds rows")
)

// Leaf is one table of processed_event.
type Leaf struct {
	Schema  string // that its table is in
	Table   string
	Span    Span // of a foreign leaf: the whole milliseconds that hold it; of the default: zero
	Default bool // holds every id that is in no other leaf
	Ours    bool // a range as retention attaches it, by name and bounds
	Rows    int64
	Bytes   int64
	Empty   bool // has not a page
}

// Overdue are the rows of a leaf that were written too long ago.
type Overdue struct {
	Rows   int       // that may go, or would if nothing were unread
	Oldest time.Time // when the oldest of them was written; zero when there is none

	Kept      int       // that stay, since their intents are unfinished
	KeptFirst uuid.UUID // the event of one of them
	KeptSince time.Time // when the oldest of them was written
}

// Bounds returns the lowest event id of the span and the lowest one behind it.
func (s Span) Bounds() (from, to uuid.UUID) { return FirstID(s.From), FirstID(s.To) }

// Overlaps reports whether an instant lies in both.
func (s Span) Overlaps(o Span) bool { return s.From.Before(o.To) && o.From.Before(s.To) }

// Contains reports whether the instant lies in the span.
func (s Span) Contains(at time.Time) bool { return !at.Before(s.From) && at.Before(s.To) }

// lastMilli is the last millisecond that the 48 bits of an event id can tell.
const lastMilli = 1<<48 - 1

// FirstID returns the lowest event id of an instant's millisecond: its 48 bits, and
// zeros. It is a bound, not the id of any event.
func FirstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	ms := min(max(at.UnixMilli(), 0), lastMilli)
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	return id
}

// InstantOf returns the millisecond in the first 48 bits of an id, in UTC, and whether
// the id is the lowest one of it.
func InstantOf(id uuid.UUID) (at time.Time, lowest bool) {
	at = time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
	return at, FirstID(at) == id
}
