package domain

import (
	"encoding/binary"
	"time"
)

// guard holds the ages of the events against our clock. It marks those that are
// older than deduplication remembers: if nothing else is known of one, it may have
// been dealt with and forgotten. And it notes by how much an id is ahead of us. What
// an operator replays does not come this way.
func (b *batch) guard(p *Policy, now time.Time) {
	for _, it := range b.leaders {
		if p.DedupRetention > 0 {
			it.outside = now.Sub(it.born()) > p.DedupRetention
		}
		if it.event.IsV7() {
			it.ahead = timeOf(&it.event).Sub(now)
		}
	}
}

// idTolerance is how far the time in an id may be ahead of our clock before it is
// counted: clocks of machines that keep them well differ by less.
const idTolerance = time.Second

// born is when the event came into being at the latest: the older of its record's
// timestamp and the time in its id, if it is of version 7. A republished event has
// a young timestamp, and a producer's clock that is ahead makes no event younger. Where
// there is neither, what the event says itself has to do.
func (it *item) born() time.Time {
	at := it.record.Timestamp
	if it.event.IsV7() {
		if id := timeOf(&it.event); at.IsZero() || id.Before(at) {
			at = id
		}
	}
	if at.IsZero() {
		return it.event.OccurredAt
	}
	return at
}

// timeOf returns the time in a UUID version 7: milliseconds in its first 48 bits.
func timeOf(e *Event) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(e.ID[:8]) >> 16))
}

// outdated holds an event that lies outside the window. Its claim stays, so that it
// is a duplicate from now on, and an operator decides.
func (r *ruling) outdated(it *item) {
	in := newIntent(&it.event, it.record, r.policy.Group, r.now)
	in.Claimed = true
	r.park(&in, ReasonOutsideDedupWindow,
		"of "+it.born().UTC().Format(time.RFC3339)+", older than DEDUP_RETENTION ("+r.policy.DedupRetention.String()+"), and nothing is known of it")
}
