package domain

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// DelayBucket says how long after the first sighting of its event a duplicate came:
// within its bound, and beyond that of the bucket before. A twin within one batch
// came after no time at all.
type DelayBucket uint8

// The buckets of [Counters.Delays].
const (
	DelayMinute DelayBucket = iota
	DelayTenMinutes
	DelayHour
	DelaySixHours
	DelayDay
	DelayThreeDays
	DelayWeek
	DelayMonth  // 30 days
	DelayLonger // than that
	// DelayForgotten: nobody knows how long. The first sighting was in processed_event
	// no more, and the event is known by its charge or intent, or was seen first by
	// another group: many of them say that DEDUP_RETENTION is too short. What repeats
	// the event after that counts from there, where it was claimed anew.
	DelayForgotten
	delayBuckets
)

// DelayBuckets lists every bucket, in the order of their bounds.
func DelayBuckets() []DelayBucket {
	all := make([]DelayBucket, delayBuckets)
	for i := range all {
		all[i] = DelayBucket(i)
	}
	return all
}

// Bound is the longest delay of the bucket, itself included; false where it has none.
func (b DelayBucket) Bound() (time.Duration, bool) {
	if b >= DelayLonger {
		return 0, false
	}
	return delayBounds()[b], true
}

func delayBounds() [DelayLonger]time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{
		DelayMinute: time.Minute, DelayTenMinutes: 10 * time.Minute, DelayHour: time.Hour, DelaySixHours: 6 * time.Hour,
		DelayDay: day, DelayThreeDays: 3 * day, DelayWeek: 7 * day, DelayMonth: 30 * day,
	}
}

// String returns the bucket's bound in short, "longer" or "forgotten".
func (b DelayBucket) String() string {
	return [delayBuckets]string{"1m", "10m", "1h", "6h", "1d", "3d", "7d", "30d", "longer", "forgotten"}[b]
}

// delayOf returns the bucket of a record that came now and repeats what was first
// seen then; the zero time is forgotten. Then is told by the database's clock and
// now by ours, so that it may lie ahead: that is no delay.
func delayOf(then, now time.Time) DelayBucket {
	if then.IsZero() {
		return DelayForgotten
	}
	late := now.Sub(then)
	for b, bound := range delayBounds() {
		if late <= bound {
			return DelayBucket(b)
		}
	}
	return DelayLonger
}

// DuplicateKind is how a record repeats an event.
type DuplicateKind string

// The kinds of duplicates.
const (
	DuplicateRedelivered DuplicateKind = "redelivered" // the same record again
	DuplicateRepublished DuplicateKind = "republished" // the same event at other coordinates
	DuplicateConflicting DuplicateKind = "conflicting" // the same event id with another meaning
)

// DuplicateKinds lists every kind.
func DuplicateKinds() []DuplicateKind {
	return []DuplicateKind{DuplicateRedelivered, DuplicateRepublished, DuplicateConflicting}
}

// Duplicate is a line of the log of duplicates: a record, and the first sighting
// of the event that it repeats. The log holds exactly what the counters count, as
// long as no transaction has more than [MaxLogged] of them: the records of a batch.
// A dead letter that is replayed and holds a known event was counted when it came,
// as invalid, and is not logged: its own row tells.
type Duplicate struct {
	ID          int64 // the order in which they were written; 0 before
	Group       string
	EventID     uuid.UUID
	Kind        DuplicateKind
	Record      Coordinates
	SeenAt      time.Time
	First       Coordinates
	FirstSeenAt time.Time // zero where processed_event has forgotten it
}

// MaxLogged bounds the lines of the log that one transaction writes. Under a flood
// of duplicates the log is a sample; the counters stay exact.
const MaxLogged = 64

// kind is how a record of the fate repeats its event; "" for every other fate.
func (f fate) kind() DuplicateKind {
	switch f {
	case fateRedelivered:
		return DuplicateRedelivered
	case fateRepublished:
		return DuplicateRepublished
	case fateConflicting:
		return DuplicateConflicting
	case fateInvalid, fateAdopted, fateSibling, fateTaken, fateOutside, fateCharged:
	}
	return ""
}

// duplicate counts a record that repeats its event's first sighting, and puts it
// into the log.
func (r *ruling) duplicate(it *item, f fate, n *Counters) {
	d := Duplicate{
		Group: r.policy.Group, EventID: it.event.ID, Kind: f.kind(), Record: it.record.Coordinates, SeenAt: r.now,
		First: it.first.Source, FirstSeenAt: it.first.SeenAt,
	}
	if it.twin {
		d.FirstSeenAt = r.now // by this very transaction
	}
	switch d.Kind {
	case DuplicateRedelivered:
		n.Redelivered++
	case DuplicateRepublished:
		n.Republished++
	case DuplicateConflicting:
		n.Conflicting++
	}
	n.Delays[delayOf(d.FirstSeenAt, r.now)]++
	r.duplicates = append(r.duplicates, d)
}

// relog takes the last conflicting line of a record for a redelivery: its letter
// was there before.
func (r *ruling) relog(c Coordinates) {
	for i := len(r.duplicates) - 1; i >= 0; i-- {
		if d := &r.duplicates[i]; d.Record == c && d.Kind == DuplicateConflicting {
			d.Kind = DuplicateRedelivered
			return
		}
	}
}

// log writes the duplicates down, once it is known what each of them is.
func (r *ruling) log(ctx context.Context, tx Tx) error {
	return tx.Log(ctx, r.duplicates[:min(len(r.duplicates), MaxLogged)])
}
