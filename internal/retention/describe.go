package retention

import (
	"slices"

	"example.com/billing/internal/domain"
)

// describe tells how the ranges stand at the end of a turn.
func (t *turn) describe(leaves []domain.Leaf) {
	ranges := t.lost
	for i := range leaves {
		leaf := &leaves[i]
		if leaf.Default {
			t.report.Default.Rows, t.report.Default.Bytes = leaf.Rows, leaf.Bytes
			continue
		}
		r := domain.RetentionRange{Span: leaf.Span, Table: leaf.Table, Rows: leaf.Rows, Bytes: leaf.Bytes, State: t.state(leaf)}
		if n, noted := t.notes[leaf.Table]; noted {
			r.State, r.Why = n.state, n.why
		}
		ranges = append(ranges, r)
	}
	slices.SortFunc(ranges, func(a, b domain.RetentionRange) int { return a.From.Compare(b.From) })
	t.report.Ranges = ranges
	for i := range ranges {
		switch r := &ranges[i]; r.State {
		case domain.RangeKept, domain.RangeCurrent, domain.RangeDue, domain.RangeBlocked:
			if t.report.Next == nil || r.To.Before(t.report.Next.To) {
				t.report.Next = &domain.RetentionNext{Span: r.Span, At: r.To.Add(t.report.Retention)}
			}
		case domain.RangeAhead, domain.RangeEmptied, domain.RangeDropped, domain.RangeMissing, domain.RangeForeign:
		}
	}
}

// state is how a range stands by the clock alone.
func (t *turn) state(leaf *domain.Leaf) domain.RangeState {
	switch {
	case !leaf.Ours:
		return domain.RangeForeign
	case due(leaf.Span, t.cutoff) && leaf.Empty:
		return domain.RangeEmptied
	case due(leaf.Span, t.cutoff):
		return domain.RangeDue
	case leaf.Span.Contains(t.now):
		return domain.RangeCurrent
	case leaf.Span.From.After(t.now):
		return domain.RangeAhead
	}
	return domain.RangeKept
}
