package kafka

import "example.com/billing/internal/domain"

// queue holds the records of one partition that wait or are in flight, in the
// order they came. Not safe for concurrent use.
type queue struct {
	items      []item
	bytes      int
	maxRecords int
	maxBytes   int
}

func (q *queue) push(arrived item) {
	q.items = append(q.items, arrived)
	q.bytes += arrived.bytes
}

// full reports that a bound is reached: the partition has to be paused.
func (q *queue) full() bool { return len(q.items) >= q.maxRecords || q.bytes >= q.maxBytes }

// roomy reports that both bounds are at most half used: the partition may be resumed.
func (q *queue) roomy() bool { return len(q.items) <= q.maxRecords/2 && q.bytes <= q.maxBytes/2 }

// head returns the first records, at most limit, and the position behind them. Their
// offsets rise strictly: a record that the client delivers a second time begins a batch of
// its own, where it is an ordinary redelivery.
func (q *queue) head(limit int) ([]domain.Record, mark) {
	limit = min(limit, len(q.items))
	if limit == 0 {
		return nil, mark{}
	}
	records := make([]domain.Record, 0, limit)
	for i := range limit {
		if i > 0 && q.items[i].record.Offset <= q.items[i-1].record.Offset {
			break
		}
		records = append(records, q.items[i].record)
	}
	return records, q.items[len(records)-1].next()
}

// drop forgets the first n records.
func (q *queue) drop(n int) {
	for _, gone := range q.items[:n] {
		q.bytes -= gone.bytes
	}
	clear(q.items[:n]) // the backing array must not keep their bytes alive
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items = nil
	}
}
