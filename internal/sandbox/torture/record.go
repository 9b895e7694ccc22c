package torture

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Hit is a fault that was made.
type Hit struct {
	Kind  string // what was done: kill, stop, cut of a link, …
	Point string // where in the flow; "" where the moment is nobody's
	// InFlight is how many charges were in flight right then.
	InFlight int
	// Missed: the point was not reached in time, so that nothing was done.
	Missed bool
}

// Window is a time in which something was disturbed.
type Window struct {
	What     string
	From, To time.Time // To is zero while it lasts
}

// reached is a victim that is at the point of an order.
type reached struct {
	member *member
	number int
}

// record is what was done to the world. It is safe for concurrent use.
type record struct {
	reached chan reached

	mu       sync.Mutex
	hits     []Hit
	windows  []*Window
	disorder []string // victims that ended otherwise than they should
	// uncommitted counts those that ended in order but for their last commit.
	uncommitted int
}

func (r *record) hit(h Hit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits = append(r.hits, h)
}

// open begins a window; the returned function ends it, so much after it was called.
func (r *record) open(what string) (end func(after time.Duration)) {
	w := &Window{What: what, From: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.windows = append(r.windows, w)
	return func(after time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		w.To = time.Now().Add(after)
	}
}

func (r *record) complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disorder = append(r.disorder, fmt.Sprintf(format, args...))
}

func (r *record) uncommit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uncommitted++
}

// overlaps reports whether something was disturbed between two moments.
func overlaps(windows []*Window, from, to time.Time, which func(*Window) bool) bool {
	return slices.ContainsFunc(windows, func(w *Window) bool {
		return which(w) && !w.From.After(to) && (w.To.IsZero() || !w.To.Before(from))
	})
}

// tally is how often a kind of fault was made at a point.
type tally struct {
	kind, point            string
	inFlight, idle, missed int
}

// tallies counts the hits, in the order of their names.
func tallies(hits []Hit) []tally {
	byName := map[[2]string]*tally{}
	for _, h := range hits {
		name := [2]string{h.Kind, h.Point}
		t := byName[name]
		if t == nil {
			t = &tally{kind: h.Kind, point: h.Point}
			byName[name] = t
		}
		switch {
		case h.Missed:
			t.missed++
		case h.InFlight > 0:
			t.inFlight++
		default:
			t.idle++
		}
	}
	var all []tally
	for _, t := range byName {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b tally) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.point, b.point)) })
	return all
}
