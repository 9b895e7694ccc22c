package audit

import "example.com/billing/internal/domain"

// span is the part of a partition that is audited.
type span struct {
	domain.Extent
	from, to int64 // to is not part of it
	records  int64
	// What was met in it.
	stands  bits // a record
	charged bits // a record that a charge or an intent names as its own
	claimed bits // a record that a row of processed_event names as its own
	// And what was met of such rows when the tables were read.
	chargedBy, claimedBy bits
}

func newSpan(e domain.Extent, from, to int64) *span {
	n := max(0, to-from)
	return &span{
		Extent: e, from: from, to: to, stands: newBits(n),
		charged: newBits(n), claimed: newBits(n), chargedBy: newBits(n), claimedBy: newBits(n),
	}
}

// holds reports whether the offset lies in the span.
func (s *span) holds(offset int64) bool { return offset >= s.from && offset < s.to }

// bits is one bit for each offset.
type bits []uint64

func newBits(n int64) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int64) { b[i/64] |= 1 << (i % 64) }

func (b bits) has(i int64) bool { return b[i/64]&(1<<(i%64)) != 0 }
