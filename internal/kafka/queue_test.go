package kafka

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// at returns an item of that offset and size. It holds no event.
func at(offset int64, bytes int) item {
	return item{record: domain.Record{Coordinates: domain.Coordinates{Topic: "t", Offset: offset}}, epoch: 4, bytes: bytes}
}

// orderAt returns an item of that offset that confirms an order, by an event of that number.
func orderAt(offset int64, event, order int) item {
	confirmed := at(offset, 1)
	confirmed.record.Value = fmt.Appendf(nil, `{"eventId":"0198f3a1-5b6c-7d8e-9f01-%012x",`+
		`"eventType":"order.confirmed.v1","occurredAt":"2026-01-02T03:04:05Z","aggregateType":"Order",`+
		`"orderId":%d,"customerId":7,"totalAmount":10.50,"currency":"EUR"}`, event, order)
	return confirmed
}

// keyed returns the item with its keys, as a lane queues it.
func keyed(biller Biller, it item) item {
	it.event, it.order, it.keyed = biller.Keys(&it.record)
	return it
}

func offsetsOf(records []domain.Record) []int64 {
	var list []int64
	for _, record := range records {
		list = append(list, record.Offset)
	}
	return list
}

// takes returns a batch of at most limit records, of which board decides.
func takes(q *queue, limit int, board func(*item) bool) *batch {
	b := &batch{}
	q.take(b, limit, board)
	return b
}

func anyone(*item) bool { return true }

func TestQueue(t *testing.T) {
	t.Parallel()

	t.Run("hands out what waits, at most the limit", func(t *testing.T) {
		t.Parallel()
		var q queue
		require.Empty(t, takes(&q, 5, anyone).records)
		for offset := range int64(7) {
			q.push(at(offset*2, 1)) // offsets have gaps
		}
		require.Equal(t, 7, q.waiting)
		require.Equal(t, []int64{0, 2, 4, 6, 8}, offsetsOf(takes(&q, 5, anyone).records))
		require.Equal(t, 2, q.waiting)
		require.Equal(t, []int64{10, 12}, offsetsOf(takes(&q, 5, anyone).records))
		require.Empty(t, takes(&q, 5, anyone).records)
		require.Equal(t, 7, q.len())
	})
	t.Run("passes over what may not go, until that is released", func(t *testing.T) {
		t.Parallel()
		var q queue
		for offset := range int64(6) {
			q.push(at(offset, 1))
		}
		odd := func(it *item) bool { return it.record.Offset%2 == 1 }
		require.Equal(t, []int64{1, 3}, offsetsOf(takes(&q, 2, odd).records))
		require.Equal(t, []int64{4, 5}, offsetsOf(takes(&q, 9, anyone).records))
		require.Empty(t, takes(&q, 9, anyone).records)
		require.Equal(t, 2, q.held)
		q.release()
		require.Equal(t, []int64{0, 2}, offsetsOf(takes(&q, 9, anyone).records))
	})
	t.Run("looks at no more than a bounded number for one batch", func(t *testing.T) {
		t.Parallel()
		var q queue
		for offset := range int64(100) {
			q.push(at(offset, 1))
		}
		looked := 0
		nobody := func(*item) bool { looked++; return false }
		require.Empty(t, takes(&q, 2, nobody).records)
		require.Equal(t, 2*scanBatches, looked)
		require.Equal(t, []int64{8, 9}, offsetsOf(takes(&q, 2, anyone).records), "the next one goes on there")
	})
	t.Run("lets no record overtake one of its event or order that was passed over", func(t *testing.T) {
		t.Parallel()
		var q queue
		biller := newHandBiller()
		for offset, it := range []item{orderAt(0, 1, 1), orderAt(1, 2, 1), orderAt(2, 1, 3), orderAt(3, 4, 4)} {
			require.EqualValues(t, offset, it.record.Offset)
			q.push(keyed(biller, it))
		}
		busy := true // what holds the first one up ends right after it was looked at
		first := func(*item) bool { was := busy; busy = false; return !was }
		require.Equal(t, []int64{3}, offsetsOf(takes(&q, 9, first).records))
		q.release()
		require.Equal(t, []int64{0, 1, 2}, offsetsOf(takes(&q, 9, anyone).records))

		q.push(keyed(biller, orderAt(4, 5, 5)))
		takes(&q, 9, func(*item) bool { return false })
		q.push(keyed(biller, orderAt(5, 1, 1)))
		require.Equal(t, []int64{5}, offsetsOf(takes(&q, 9, anyone).records), "what was released is in nobody's way")
	})
	t.Run("is cut behind the last record that others have not overtaken", func(t *testing.T) {
		t.Parallel()
		var q queue
		for offset := range int64(8) {
			q.push(at(offset, 1))
		}
		takes(&q, 3, func(it *item) bool { return it.record.Offset != 1 })
		takes(&q, 3, func(*item) bool { return false })
		require.Equal(t, 5, q.held)
		q.push(at(8, 1))
		q.cut()
		require.Equal(t, 4, q.len(), "the one passed over, and those in flight")
		require.Equal(t, 1, q.held)
		require.Zero(t, q.waiting)
		q.release()
		require.Equal(t, []int64{1}, offsetsOf(takes(&q, 9, anyone).records))
	})
	t.Run("takes an offset that does not rise for one that has to wait", func(t *testing.T) {
		t.Parallel()
		var q queue
		again, next := at(5, 1), at(6, 1)
		require.True(t, q.follows(&again), "nothing is before it")
		q.push(at(5, 1))
		require.False(t, q.follows(&again))
		require.True(t, q.follows(&next))
		b := takes(&q, 1, anyone)
		require.False(t, q.follows(&again), "in flight")
		q.finish(b)
		require.True(t, q.follows(&again))
	})
	t.Run("keeps its places while it grows and shrinks", func(t *testing.T) {
		t.Parallel()
		var q queue
		pushed, finished := int64(0), int64(0)
		for round := range 400 {
			for range round%7 + 1 {
				q.push(at(pushed, 1))
				pushed++
			}
			b := takes(&q, round%5+1, anyone)
			for _, record := range b.records {
				require.Equal(t, finished, record.Offset)
				finished++
			}
			require.Equal(t, finished, q.finish(b).position.offset)
			require.EqualValues(t, pushed-finished, q.len())
		}
		require.Less(t, cap(q.items), 4*q.len()+keepItems)
	})
	t.Run("an empty one keeps little room", func(t *testing.T) {
		t.Parallel()
		var q queue
		for offset := range int64(10 * keepItems) {
			q.push(at(offset, 1))
		}
		q.finish(takes(&q, 10*keepItems, anyone))
		require.LessOrEqual(t, cap(q.items), keepItems)
	})
}

func TestLoadIsFullAtEitherBoundAndRoomyBelowHalfOfBoth(t *testing.T) {
	t.Parallel()
	l := load{maxRecords: 4, maxBytes: 100}
	for range 4 {
		require.False(t, l.full())
		l.add(1)
	}
	require.True(t, l.full(), "by records")
	l.give(1, 1)
	require.False(t, l.full())
	require.False(t, l.roomy())
	l.give(1, 1)
	require.True(t, l.roomy())
	l.add(98)
	require.True(t, l.full(), "by bytes")
	l.give(2, 2)
	require.False(t, l.roomy())
	l.give(1, 98)
	require.True(t, l.roomy())
	require.Zero(t, l.bytes)
}
