package kafka

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/billing/internal/domain"
)

func TestWatermark(t *testing.T) {
	t.Parallel()
	setup := func(offsets ...int64) *queue {
		q := &queue{}
		for _, offset := range offsets {
			q.push(at(offset, 10))
		}
		return q
	}

	t.Run("follows batches in order", func(t *testing.T) {
		t.Parallel()
		q := setup(7, 9, 24)
		require.Equal(t, progress{bytes: 20, passed: 2, position: mark{offset: 10, epoch: 4}}, q.finish(takes(q, 2, anyone)))
		require.Equal(t, progress{bytes: 10, passed: 1, position: mark{offset: 25, epoch: 4}}, q.finish(takes(q, 2, anyone)))
	})
	t.Run("does not pass a gap", func(t *testing.T) {
		t.Parallel()
		q := setup(1, 2, 3)
		first, second, third := takes(q, 1, anyone), takes(q, 1, anyone), takes(q, 1, anyone)
		require.Equal(t, progress{bytes: 10}, q.finish(third))
		require.EqualValues(t, 2, q.finish(first).position.offset)
		require.Equal(t, progress{bytes: 10, passed: 2, position: mark{offset: 4, epoch: 4}}, q.finish(second))
	})
	t.Run("what is durable behind a gap keeps no bytes alive", func(t *testing.T) {
		t.Parallel()
		q := setup(1)
		q.push(orderAt(2, 1, 1))
		takes(q, 1, anyone)
		q.finish(takes(q, 1, anyone))
		require.Equal(t, domain.Record{Coordinates: domain.Coordinates{Topic: "t", Offset: 2}}, q.at(1).record)
	})
	t.Run("a batch that failed begins anew at its place", func(t *testing.T) {
		t.Parallel()
		q := setup(1, 2, 3)
		first, second := takes(q, 1, anyone), takes(q, 1, anyone)
		q.giveBack(first)
		require.Zero(t, q.finish(second).passed)
		again := takes(q, 9, anyone)
		require.Equal(t, []int64{1, 3}, offsetsOf(again.records))
		require.EqualValues(t, 4, q.finish(again).position.offset)
	})
	t.Run("goes back with the log", func(t *testing.T) {
		t.Parallel()
		q := setup(1000)
		q.finish(takes(q, 1, anyone))
		q.push(at(0, 1))
		require.EqualValues(t, 1, q.finish(takes(q, 1, anyone)).position.offset)
	})
}

// flightModel is two lanes' queues that share what is in flight, and what is
// known about every record that they were given.
type flightModel struct {
	biller  *handBiller
	flights *flights
	lanes   [2]*lane
	given   [2][]*modelRecord
	begun   []*batch
	done    [2]int64 // position of each
}

type modelRecord struct {
	offset       int64
	event, order int
	in           *batch
	times        int // made durable
}

func (m *flightModel) push(t *rapid.T, lane int) {
	record := &modelRecord{
		offset: 1, event: rapid.IntRange(1, 12).Draw(t, "event"), order: rapid.IntRange(1, 12).Draw(t, "order"),
	}
	if n := len(m.given[lane]); n > 0 {
		record.offset = m.given[lane][n-1].offset + rapid.Int64Range(1, 3).Draw(t, "gap")
	}
	m.given[lane] = append(m.given[lane], record)
	it := orderAt(record.offset, record.event, record.order)
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		it.record.Value, record.event, record.order = nil, 0, 0
	}
	m.lanes[lane].own.queue.push(keyed(m.biller, it))
}

func (m *flightModel) find(lane int, offset int64) *modelRecord {
	at := slices.IndexFunc(m.given[lane], func(r *modelRecord) bool { return r.offset == offset })
	return m.given[lane][at]
}

func (m *flightModel) begin(t *rapid.T, lane, limit int) {
	b := &batch{lane: m.lanes[lane]}
	m.flights.board(b, &m.lanes[lane].own.queue, limit)
	require.LessOrEqual(t, len(b.records), limit)
	require.True(t, slices.IsSorted(offsetsOf(b.records)))
	for _, taken := range b.records {
		record := m.find(lane, taken.Offset)
		require.Nil(t, record.in, "in two batches at a time")
		require.Zero(t, record.times, "durable already")
		record.in = b
	}
	if len(b.records) > 0 {
		m.begun = append(m.begun, b)
	}
}

func (m *flightModel) end(t *rapid.T, b *batch, failed bool) {
	m.begun = slices.DeleteFunc(m.begun, func(other *batch) bool { return other == b })
	lane := slices.Index(m.lanes[:], b.lane)
	q := &b.lane.own.queue
	for _, heldUp := range m.flights.release(b, q) {
		heldUp.own.queue.release()
	}
	for _, record := range m.given[lane] {
		if record.in == b {
			record.in = nil
			if !failed {
				record.times++
			}
		}
	}
	if failed {
		q.giveBack(b)
		return
	}
	if made := q.finish(b); made.passed > 0 {
		m.done[lane] = made.position.offset
	}
	want, held := int64(0), len(m.given[lane])
	for _, record := range m.given[lane] {
		if record.times == 0 {
			break
		}
		want = record.offset + 1
		held--
	}
	require.Equal(t, want, m.done[lane], "the end of the durable prefix")
	require.Equal(t, held, q.len())
}

// check holds the model against the rules of what may be in flight at a time.
func (m *flightModel) check(t *rapid.T) {
	events, orders := map[int]*batch{}, map[int]*batch{}
	for lane := range m.given {
		earlier := map[[2]int]*modelRecord{} // unfinished ones, by key
		for _, r := range m.given[lane] {
			if r.event == 0 || r.times > 0 {
				continue
			}
			for _, key := range [][2]int{{0, r.event}, {1, r.order}} {
				if before := earlier[key]; before != nil && r.in != nil {
					require.Same(t, r.in, before.in, "offset %d has overtaken offset %d", r.offset, before.offset)
				}
				earlier[key] = r
			}
			if r.in == nil {
				continue
			}
			for owners, key := range map[*map[int]*batch]int{&events: r.event, &orders: r.order} {
				if owner := (*owners)[key]; owner != nil {
					require.Same(t, owner, r.in, "one event or order in two batches")
				}
				(*owners)[key] = r.in
			}
		}
	}
	require.Len(t, m.flights.owners, len(events)+len(orders), "nothing is claimed that is not in flight")
}

// Whatever the order in which batches begin, finish and fail, the mark stands exactly
// at the end of the durable prefix, every record becomes durable once, no event or order is in
// two batches, and none overtakes an earlier record of its own.
func TestWatermarkIsTheFinishedPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &flightModel{biller: newHandBiller(), flights: newFlights(), lanes: [2]*lane{{}, {}}}
		side := rapid.IntRange(0, 1)
		t.Repeat(map[string]func(*rapid.T){
			"push":  func(t *rapid.T) { m.push(t, side.Draw(t, "lane")) },
			"begin": func(t *rapid.T) { m.begin(t, side.Draw(t, "lane"), rapid.IntRange(1, 5).Draw(t, "limit")) },
			"end": func(t *rapid.T) {
				if len(m.begun) > 0 {
					m.end(t, rapid.SampledFrom(m.begun).Draw(t, "batch"), rapid.IntRange(0, 3).Draw(t, "failed") == 0)
				}
			},
			"": m.check,
		})
		for lane := range m.lanes {
			for q := &m.lanes[lane].own.queue; q.len() > 0; m.check(t) {
				m.begin(t, lane, 5)
				require.NotEmpty(t, m.begun, "something may always go")
				m.end(t, m.begun[0], false)
			}
		}
		for _, given := range m.given {
			for _, record := range given {
				require.Equal(t, 1, record.times)
			}
		}
		require.Empty(t, m.flights.owners)
	})
}

// BenchmarkWatermark tells what queueing costs per record: its place, its keys in the table of flights,
// and the prefix, in a lane that is always full and whose batches end in any order.
func BenchmarkWatermark(b *testing.B) {
	const held, limit = 2048, 256
	biller := newHandBiller()
	items := make([]item, 4*held)
	for i := range items {
		items[i] = keyed(biller, orderAt(int64(i), i+1, i+1))
	}
	f, l := newFlights(), &lane{}
	q := &l.own.queue
	pushed, records, turn := 0, 0, 0
	var begun [held / limit]*batch
	b.ReportAllocs()
	for b.Loop() {
		for q.len() < held {
			q.push(items[pushed%len(items)])
			pushed++
		}
		for i := range begun {
			if begun[i] == nil {
				begun[i] = &batch{lane: l, records: make([]domain.Record, 0, limit)}
				f.board(begun[i], q, limit)
			}
		}
		for range len(begun) / 2 {
			turn = (turn + 5) % len(begun) // all of them in turn, out of order
			ended := begun[turn]
			begun[turn] = nil
			if len(ended.records) == 0 {
				continue // all that is behind the oldest batch is durable
			}
			f.release(ended, q)
			q.finish(ended)
			records += len(ended.records)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
}
