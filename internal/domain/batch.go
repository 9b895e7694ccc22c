package domain

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"
)

// fate is what a batch makes of one record.
type fate uint8

const (
	fateInvalid     fate = iota // holds no valid event: parked
	fateRedelivered             // the same record again
	fateRepublished             // the same event at other coordinates
	fateConflicting             // the same event id with another meaning: parked
	fateAdopted                 // fresh, and an unclaimed intent of its own is there: claim it
	fateSibling                 // fresh, but another event's intent claims the order: wait
	fateTaken                   // fresh, but another event's charge claims the order
	fateOutside                 // fresh as it seems, but older than deduplication remembers: parked
	fateCharged                 // fresh: open an intent and call
)

// fresh reports whether the record is the one that claims its event.
func (f fate) fresh() bool { return f >= fateAdopted }

// item is one record on its way through a batch.
type item struct {
	record      *Record
	invalid     error // why it holds no valid event
	event       Event
	fingerprint Fingerprint

	fate    fate
	outside bool          // older than deduplication remembers
	ahead   time.Duration // of our clock, the time in its id; 0 where it has none
	claimed bool          // this transaction inserted the event's row
	first   Sighting      // the sighting that the event's other records repeat
	twin    bool          // repeats a record of this very batch, which is fresh
	order   *Charge       // the charge that claims the order
	opened  *Intent       // the intent that this batch committed aside, ours by its token
	answer  Answer        // to the call; Withheld until there is one
	left    bool          // the call was left behind at the soft deadline: its answer comes later
}

func (it *item) sighting() Sighting {
	return Sighting{EventID: it.event.ID, Source: it.record.Coordinates, Fingerprint: it.fingerprint}
}

func (it *item) subject() Subject {
	return Subject{EventID: it.event.ID, OrderID: it.event.OrderID}
}

// repeats returns the fate of a record whose event was first seen elsewhere.
func (it *item) repeats(first Sighting) fate {
	it.first = first
	switch {
	case it.fingerprint != first.Fingerprint:
		return fateConflicting
	case it.record.Coordinates == first.Source:
		return fateRedelivered
	default:
		return fateRepublished
	}
}

// batch is the records of one transaction, in their order.
type batch struct {
	items     []*item
	leaders   []*item           // the first record of each event, in record order
	followers map[*item][]*item // the further records of a leader's event
	calls     *calls            // nil where nothing is to be charged
}

// newBatch decodes the records and finds the repetitions within them.
func newBatch(d Decoder, records []Record) *batch {
	b := &batch{items: make([]*item, 0, len(records)), followers: map[*item][]*item{}}
	seen := make(map[uuid.UUID]*item, len(records))
	all := make([]item, len(records))
	for i := range records {
		it := &all[i]
		it.record = &records[i]
		it.answer = Answer{Kind: Withheld}
		b.items = append(b.items, it)
		found := it.record.decode(d)
		if it.invalid = found.invalid; it.invalid != nil {
			continue
		}
		it.event, it.fingerprint = found.event, found.fingerprint
		if leader := seen[it.event.ID]; leader != nil {
			b.followers[leader] = append(b.followers[leader], it)
			continue
		}
		seen[it.event.ID] = it
		b.leaders = append(b.leaders, it)
	}
	return b
}

// sightings returns the events to claim, in the order of their ids: two
// transactions that claim the same events never wait for each other in a circle.
func (b *batch) sightings() []Sighting {
	s := make([]Sighting, len(b.leaders))
	for i, it := range b.leaders {
		s[i] = it.sighting()
	}
	slices.SortFunc(s, func(x, y Sighting) int { return bytes.Compare(x.EventID[:], y.EventID[:]) })
	return s
}

// charging returns the items that are to be charged, as far as is known.
func (b *batch) charging() []*item {
	var out []*item
	for _, it := range b.leaders {
		if it.fate == fateCharged {
			out = append(out, it)
		}
	}
	return out
}

// opened returns the items whose intent this batch committed aside and whose
// answer is its own to keep.
func (b *batch) opened() []*item {
	var out []*item
	for _, it := range b.leaders {
		if it.opened != nil && !it.left {
			out = append(out, it)
		}
	}
	return out
}

// follow gives the further records of each event their fate, once that of the
// first one is settled.
func (b *batch) follow() {
	for leader, followers := range b.followers {
		for _, it := range followers {
			it.fate = it.repeats(leader.first)
			it.twin = leader.fate.fresh()
		}
	}
}

func subjects(items []*item) []Subject {
	s := make([]Subject, len(items))
	for i, it := range items {
		s[i] = it.subject()
	}
	return s
}
