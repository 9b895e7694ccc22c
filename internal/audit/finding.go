package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// Finding is one thing that is wrong.
type Finding struct {
	Problem Problem
	At      domain.Coordinates // of the record that it is about; the zero value where it is about none
	EventID uuid.UUID          // uuid.Nil where there is none
	OrderID int64              // 0 where there is none
	What    string
}

// findings keeps the first of them, and counts all.
type findings struct {
	keep  int
	list  []Finding
	count map[Problem]int64
}

func (f *findings) add(found ...Finding) {
	for _, one := range found {
		if f.count == nil {
			f.count = map[Problem]int64{}
		}
		f.count[one.Problem]++
		if len(f.list) < f.keep {
			f.list = append(f.list, one)
		}
	}
}

func (f *findings) total() (n int64) {
	for _, c := range f.count {
		n += c
	}
	return n
}

// sorted returns the kept findings by problem and coordinates.
func (f *findings) sorted() []Finding {
	order := map[Problem]int{}
	for i, p := range Problems() {
		order[p] = i
	}
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.Problem], order[b.Problem]),
			cmp.Compare(a.At.Partition, b.At.Partition), cmp.Compare(a.At.Offset, b.At.Offset))
	})
	return f.list
}

// about returns a finding about a record.
func (s *subject) about(p Problem, format string, args ...any) Finding {
	return Finding{Problem: p, At: s.at, EventID: s.event.ID, OrderID: s.event.OrderID, What: fmt.Sprintf(format, args...)}
}
