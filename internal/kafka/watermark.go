package kafka

import "example.com/billing/internal/domain"

// mark is a position in a partition: the next offset to be consumed, and the
// leader epoch of the record before it.
type mark struct {
	offset int64
	epoch  int32
}

// unknown is the position of a partition from which nothing was seen yet.
const unknown = int64(-1)

// progress is what the end of a batch has moved.
type progress struct {
	bytes    int  // given up by records that became durable
	passed   int  // records that left the queue: they and all before them are durable
	position mark // behind the last of these; means nothing when there are none
}

// finish marks the records of a batch durable, and passes those before which none is
// left that is not. Batches may finish out of order; the position never jumps a gap. It follows the
// order in which records came, not their offsets: should the log go back, so does it.
func (q *queue) finish(b *batch) progress {
	var made progress
	q.each(b, func(it *item, _ int64) {
		made.bytes += it.bytes
		it.state, it.in = durable, nil
		// Behind a gap it may stay for long, and only its place counts.
		it.record = domain.Record{Coordinates: it.record.Coordinates}
	})
	for ; q.head < q.end() && q.at(q.head).state == durable; q.head++ {
		it := q.at(q.head)
		made.position = it.next()
		made.passed++
		*it = item{}
	}
	if q.len() == 0 {
		q.items, q.first = q.items[:0], q.head
		if cap(q.items) > keepItems {
			q.items = nil
		}
	}
	q.scan = max(q.scan, q.head)
	return made
}

// prefix returns the position behind the records that are durable, or in the batch at no
// greater an offset than last, and before which none is left that is neither. Some is false
// where there is no such record.
func (q *queue) prefix(b *batch, last int64) (to mark, some bool) {
	for place := q.head; place < q.end(); place++ {
		it := q.at(place)
		if it.state != durable && (it.in != b || it.record.Offset > last) {
			break
		}
		to, some = it.next(), true
	}
	return to, some
}
