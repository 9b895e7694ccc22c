package kafka

import (
	"slices"
	"sync"

	"example.com/billing/internal/domain"
)

// batch is records of one lane that go through Biller.Bill together.
type batch struct {
	lane     *lane
	records  []domain.Record
	from, to int64 // places in the lane's queue between which its records stand
	setbacks int   // how many the lane had had when the batch began
	err      error // what became of it; nil: durable
	told     int64 // the position that its transaction wrote, where the book keeps it

	heldUp []*lane // lanes with records that wait for this batch; guarded by flights
}

// flights knows the events and orders in flight in this process, over all lanes,
// and which batch they belong to. A record whose event or order is in another batch
// waits for that one's end: else its transaction would wait, in the database and with a
// connection, for the other's charges. Within one batch they may repeat.
type flights struct {
	mu     sync.Mutex
	owners map[domain.Key]*batch // of events and orders: their keys differ
}

func newFlights() *flights { return &flights{owners: map[domain.Key]*batch{}} }

// board fills a batch with the first records of the queue that may go, at most limit.
// The lanes of the others are told when to try again.
func (f *flights) board(b *batch, q *queue, limit int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.take(b, limit, func(it *item) bool { return f.claim(b, it) })
}

// claim makes the record's event and order the batch's, both or none. The lock is held.
func (f *flights) claim(b *batch, it *item) bool {
	if !it.keyed {
		return true
	}
	for _, key := range [...]domain.Key{it.event, it.order} {
		owner := f.owners[key]
		if owner == nil || owner == b {
			continue
		}
		if !slices.Contains(owner.heldUp, b.lane) {
			owner.heldUp = append(owner.heldUp, b.lane)
		}
		return false
	}
	f.owners[it.event], f.owners[it.order] = b, b
	return true
}

// release gives up what the batch has claimed, while its records are still in flight
// in the queue, and returns the lanes that it has held up.
func (f *flights) release(b *batch, q *queue) []*lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.each(b, func(it *item, _ int64) {
		if it.keyed {
			delete(f.owners, it.event)
			delete(f.owners, it.order)
		}
	})
	waiting := b.heldUp
	b.heldUp = nil
	return waiting
}
