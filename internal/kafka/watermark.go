package kafka

// mark is a position in a partition: the next offset to be consumed, and the
// leader epoch of the record before it.
type mark struct {
	offset int64
	epoch  int32
}

// unknown is the position of a partition from which nothing was seen yet.
const unknown = int64(-1)

// span is a batch on its way: everything up to end is durable once it and
// every span before it is finished.
type span struct {
	end      mark
	finished bool
}

// watermark follows batches that may finish out of order, and tells how far
// everything is durable without a gap. It orders spans by when they began, not by offset:
// should the log go back, so does the mark. Not safe for concurrent use.
type watermark struct {
	open []*span
}

// begin puts a batch on its way that ends at end.
func (w *watermark) begin(end mark) *span {
	opened := &span{end: end}
	w.open = append(w.open, opened)
	return opened
}

// finish marks the span durable. It returns the new position and true when the
// finished prefix has grown, and false while an earlier span is still open.
func (w *watermark) finish(done *span) (mark, bool) {
	done.finished = true
	var position mark
	moved := 0
	for _, opened := range w.open {
		if !opened.finished {
			break
		}
		position = opened.end
		moved++
	}
	clear(w.open[:moved])
	w.open = w.open[moved:]
	return position, moved > 0
}

// abandon takes a batch that failed off its way: its records begin anew.
// Spans behind it that are finished already must not let the mark pass it, so it
// may only be abandoned while it is the last one begun.
func (w *watermark) abandon(failed *span) {
	if last := len(w.open) - 1; last >= 0 && w.open[last] == failed {
		w.open[last] = nil
		w.open = w.open[:last]
	}
}
