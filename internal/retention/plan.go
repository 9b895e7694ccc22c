package retention

import (
	"slices"
	"time"

	"example.com/billing/internal/domain"
)

// plan is what a turn has to do.
type plan struct {
	attach []domain.Span // by how much they are needed: today's, those ahead, those behind
	due    []domain.Leaf // our ranges that are wholly older than the retention, oldest first
	rest   []domain.Leaf // the others that are cleaned row by row
}

// makePlan compares what is there with what should be. Ranges are aligned to the width
// and clipped by what is there already, so that another width leaves no hole and
// no overlap.
func makePlan(leaves []domain.Leaf, now time.Time, c *Config) plan {
	var p plan
	cutoff := now.Add(-c.Retention)
	for i := range leaves {
		leaf := &leaves[i]
		switch {
		case !leaf.Ours:
			p.rest = append(p.rest, *leaf)
		case due(leaf.Span, cutoff):
			p.due = append(p.due, *leaf)
			if c.Mode == domain.RetainByDelete {
				p.rest = append(p.rest, *leaf)
			}
		case c.Mode == domain.RetainByDelete:
			p.rest = append(p.rest, *leaf)
		}
	}
	slices.SortFunc(p.due, func(a, b domain.Leaf) int { return a.Span.From.Compare(b.Span.From) })
	if c.Mode == domain.RetainByPartition {
		p.attach = missing(leaves, now, cutoff, c.Width)
	}
	return p
}

// due reports whether a span is wholly older than the retention.
func due(s domain.Span, cutoff time.Time) bool { return !s.To.After(cutoff) }

// missing returns the spans of the window that no leaf holds.
func missing(leaves []domain.Leaf, now, cutoff time.Time, w Width) []domain.Span {
	end := w.next(w.floor(now))
	for range w.ahead() {
		end = w.next(end)
	}
	var gaps []domain.Span
	for from := w.floor(cutoff); from.Before(end); from = w.next(from) {
		gaps = append(gaps, without(domain.Span{From: from, To: w.next(from)}, leaves)...)
	}
	gaps = slices.DeleteFunc(gaps, func(s domain.Span) bool { return due(s, cutoff) })
	slices.SortStableFunc(gaps, func(a, b domain.Span) int { return urgency(a, now) - urgency(b, now) })
	// Of those behind us the youngest first.
	behind := slices.IndexFunc(gaps, func(s domain.Span) bool { return urgency(s, now) == 2 })
	if behind >= 0 {
		slices.Reverse(gaps[behind:])
	}
	return gaps
}

func urgency(s domain.Span, now time.Time) int {
	switch {
	case s.Contains(now):
		return 0
	case s.From.After(now):
		return 1
	}
	return 2
}

// without returns what is left of a span when what the leaves hold is taken out of it,
// in whole days: ids beside the bounds of a leaf that is not ours go to the default partition.
func without(s domain.Span, leaves []domain.Leaf) []domain.Span {
	var held []domain.Span
	for i := range leaves {
		if !leaves[i].Default && leaves[i].Span.Overlaps(s) {
			held = append(held, leaves[i].Span)
		}
	}
	slices.SortFunc(held, func(a, b domain.Span) int { return a.From.Compare(b.From) })
	var left []domain.Span
	keep := func(from, to time.Time) {
		if whole := Day.floor(from); whole.Before(from) {
			from = Day.next(whole)
		}
		if to = Day.floor(to); from.Before(to) {
			left = append(left, domain.Span{From: from, To: to})
		}
	}
	from := s.From
	for _, h := range held {
		keep(from, h.From)
		if h.To.After(from) {
			from = h.To
		}
	}
	keep(from, s.To)
	return left
}
