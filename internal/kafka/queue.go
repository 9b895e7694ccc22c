package kafka

import "example.com/billing/internal/domain"

// scanBatches bounds how many records one batch may look at, in batches of the
// largest size: behind more passed-over ones than that, the next batch goes on.
const scanBatches = 4

// keepItems is up to how many items' room an empty queue keeps for the next ones.
const keepItems = 256

// queue holds the records of one partition, in the order they came, from their
// arrival until they and all before them are durable. Records are addressed by
// their place: how many came before. Not safe for concurrent use.
type queue struct {
	items []item
	first int64 // place of items[0]
	head  int64 // place of the first record that is not both durable and passed
	scan  int64 // no record before this place is waiting
	taken int64 // no record from this place on was ever in a batch

	waiting int // records that a batch may take
	held    int // records passed over
	// spoken are the keys of the records passed over: later records of the same
	// event or order must not overtake them.
	spoken map[domain.Key]struct{}
}

func (q *queue) push(arrived item) {
	if gone := int(q.head - q.first); len(q.items) == cap(q.items) && gone > len(q.items)/4 {
		kept := copy(q.items, q.items[gone:])
		clear(q.items[kept:])
		q.items, q.first = q.items[:kept], q.head
	}
	q.items = append(q.items, arrived)
	q.waiting++
}

// len returns how many records are held: waiting, passed over, in flight, or
// durable behind one that is not.
func (q *queue) len() int { return int(q.end() - q.head) }

func (q *queue) end() int64 { return q.first + int64(len(q.items)) }

func (q *queue) at(place int64) *item { return &q.items[place-q.first] }

// follows reports whether the record's offset lies behind all that the queue
// holds. One that does not (the client has delivered it twice, or the log was cut
// back) has to wait until the queue is empty: it is an ordinary redelivery then.
func (q *queue) follows(next *item) bool {
	return q.len() == 0 || next.record.Offset > q.items[len(q.items)-1].record.Offset
}

// take boards the first waiting records that may go, at most limit. The others that it
// looked at are passed over, until release.
func (q *queue) take(b *batch, limit int, board func(*item) bool) {
	for seen := 0; q.scan < q.end() && len(b.records) < limit && seen < scanBatches*limit; q.scan++ {
		it := q.at(q.scan)
		if it.state != waiting {
			continue
		}
		seen++
		q.waiting--
		if q.overtakes(it) || !board(it) {
			q.hold(it)
			continue
		}
		it.state, it.in = flying, b
		if len(b.records) == 0 {
			b.from = q.scan
		}
		b.to = q.scan
		q.taken = max(q.taken, q.scan+1)
		b.records = append(b.records, it.record)
	}
}

func (q *queue) overtakes(it *item) bool {
	if q.held == 0 || !it.keyed {
		return false
	}
	_, event := q.spoken[it.event]
	_, order := q.spoken[it.order]
	return event || order
}

func (q *queue) hold(it *item) {
	it.state = held
	q.held++
	if q.spoken == nil {
		q.spoken = map[domain.Key]struct{}{}
	}
	q.spoken[it.event], q.spoken[it.order] = struct{}{}, struct{}{}
}

// release lets the records that were passed over wait again.
func (q *queue) release() {
	for place := q.head; q.held > 0; place++ {
		if it := q.at(place); it.state == held {
			q.wait(it, place)
			q.held--
		}
	}
	clear(q.spoken)
}

// cut drops the records that were never in a batch and have been overtaken by none.
func (q *queue) cut() {
	from := max(q.taken, q.head)
	for place := from; place < q.end(); place++ {
		if q.at(place).state == held {
			q.held--
		} else {
			q.waiting--
		}
	}
	clear(q.items[from-q.first:])
	q.items = q.items[:from-q.first]
	q.scan = min(q.scan, from)
}

func (q *queue) wait(it *item, place int64) {
	it.state, it.in = waiting, nil
	q.waiting++
	q.scan = min(q.scan, place)
}

// giveBack lets the records of a batch that failed wait again, at their places.
func (q *queue) giveBack(b *batch) {
	q.each(b, func(it *item, place int64) { q.wait(it, place) })
}

// each visits the records of a batch in flight.
func (q *queue) each(b *batch, visit func(it *item, place int64)) {
	for place := b.from; place <= b.to; place++ {
		if it := q.at(place); it.in == b {
			visit(it, place)
		}
	}
}
