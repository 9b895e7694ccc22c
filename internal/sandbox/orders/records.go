package orders

import (
	"iter"
	"math/rand/v2"
)

// Kind is a record's part in the plan.
type Kind int

const (
	// Original is the first record of an event.
	Original Kind = iota
	// Repeated is an exact copy right behind the original.
	Repeated
	// Republished is the same event in other bytes, later on.
	Republished
	// Conflicting is a record with the id of the event and another amount, later on.
	Conflicting
	// Invalid is a record that holds no valid event, with the key of an order.
	Invalid
)

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record to produce. Its bytes are not used again by the plan.
type Record struct {
	Kind    Kind
	OrderID int64
	Key     []byte
	Value   []byte
	Headers []Header
}

// republishWindow bounds how many originals later an event is republished, and with it the memory of a walk.
const republishWindow = 1000

// Records walks the plan from its beginning.
func (p *Plan) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		w := walk{
			plan: p, yield: yield,
			random: random(p.options.Seed, streamSchedule, 0), odd: random(p.options.Seed, streamOdd, 0),
		}
		w.run()
	}
}

// walk is one pass over a plan.
type walk struct {
	plan   *Plan
	yield  func(Record) bool
	random *rand.Rand
	// odd are random numbers of their own for what is out of order, so that the rest of a plan is the same without.
	odd *rand.Rand
	// due[i % republishWindow] is what is to come once order i is out.
	due   [republishWindow][]due
	twins int
}

// due is an order that is to come again.
type due struct {
	order int
	kind  Kind
}

func (w *walk) run() {
	unique := w.plan.expected.Unique
	repeats := quota{left: w.plan.expected.Repeated, over: unique}
	republishes := quota{left: w.plan.expected.Republished, over: unique}
	conflicts := quota{left: w.plan.expected.Conflicting, over: unique}
	invalid := quota{left: w.plan.expected.Invalid, over: unique}

	for i := range unique {
		r := w.plan.original(i)
		if !w.yield(r) {
			return
		}

		for range repeats.next(w.random) {
			twin := r
			twin.Kind = Repeated

			if !w.yield(twin) {
				return
			}
		}

		for range republishes.next(w.random) {
			w.schedule(due{i, Republished}, w.random)
		}

		for range conflicts.next(w.odd) {
			w.schedule(due{i, Conflicting}, w.odd)
		}

		for range invalid.next(w.odd) {
			if !w.yield(w.plan.invalid(i, w.odd)) {
				return
			}
		}

		if !w.republish(i % republishWindow) {
			return
		}
	}
}

// schedule puts off what comes again: before the next turn of the ring, and before the end of the plan.
func (w *walk) schedule(d due, r *rand.Rand) {
	delay := min(1+r.IntN(republishWindow-1), w.plan.expected.Unique-1-d.order)
	slot := (d.order + delay) % republishWindow
	w.due[slot] = append(w.due[slot], d)
}

// republish sends what is due in a slot and empties it.
func (w *walk) republish(slot int) bool {
	for _, d := range w.due[slot] {
		var again Record

		if d.kind == Republished {
			w.twins++
			again = w.plan.twin(d.order, w.twins)
		} else {
			again = w.plan.conflict(d.order, w.odd)
		}

		if !w.yield(again) {
			return false
		}
	}

	w.due[slot] = w.due[slot][:0]

	return true
}

// quota spreads a number of duplicates over a number of orders at random, and comes out even (selection sampling: the chance is what
// is left to give over what is left to get).
type quota struct {
	left, over int
}

// next is the number for the next order.
func (q *quota) next(r *rand.Rand) int {
	n := q.left / q.over
	if r.IntN(q.over) < q.left%q.over {
		n++
	}

	q.left -= n
	q.over--

	return n
}
