package run

import (
	"context"
	"errors"
	"time"
)

// watch looks at a group while instances join and leave, and sends the records that are to meet it.
type watch struct {
	roller *roller
	turn   int
	leaver *instance // ends while it is watched; nil: nobody

	stirred  time.Time // when the group was first seen to move
	lanes    map[*instance]map[int32]int
	settled  bool
	members  int // of the group at the last look
	inFlight int // most records in flight as partitions changed hands
}

// until looks until those who move have moved, told by moved, and every partition has an owner, at
// most settleTimeout. The error is that of the move: a group that does not settle is not one.
func (w *watch) until(ctx context.Context, moved <-chan error) error {
	bounded, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	tick := time.NewTicker(rollLook)
	defer tick.Stop()
	for {
		select {
		case err := <-moved:
			if err != nil {
				return err
			}
			moved = nil
		case <-tick.C:
		case <-bounded.Done():
			if moved != nil {
				return errors.Join(<-moved, context.Cause(ctx)) // it has bounds of its own
			}
			return context.Cause(ctx)
		}
		w.look(bounded)
		if moved == nil && w.settled {
			return nil
		}
	}
}

// look takes one look. What can't be asked is asked again by the next one.
func (w *watch) look(ctx context.Context) {
	r := w.roller
	running := r.members.running()
	want := len(running)
	if w.leaver != nil {
		want--
	}
	now, err := r.watcher.stands(ctx)
	if err != nil {
		w.settled = false
		return
	}
	w.settled = now.settled(want)
	w.members = now.members
	if !w.settled && w.stirred.IsZero() && now.moving {
		w.stirred = time.Now()
	}
	w.send()
	lanes := make(map[*instance]map[int32]int, len(running))
	for _, i := range running {
		if i == w.leaver {
			continue
		}
		if found, err := i.lanes(ctx); err == nil {
			lanes[i] = found
		}
	}
	if handed(w.lanes, lanes) {
		w.inFlight = max(w.inFlight, totals(w.lanes), totals(lanes))
	}
	w.lanes = lanes
}

// send lets as many of the turn's records go as are due: they last while the group moves.
func (w *watch) send() {
	if w.stirred.IsZero() {
		return
	}
	r := w.roller
	from, to := r.upTo(w.turn, rollHead), r.upTo(w.turn, 1)
	due := int64(float64(to-from) * min(1, float64(time.Since(w.stirred))/float64(rollTail)))
	if due < to-from {
		due -= due % rollLump
	}
	r.feed.allow(from + due)
}

// handed reports whether a partition was given up or taken over between two looks.
func handed(before, after map[*instance]map[int32]int) bool {
	for i, now := range after {
		earlier, known := before[i]
		if !known {
			continue
		}
		if len(earlier) != len(now) {
			return true
		}
		for partition := range earlier {
			if _, kept := now[partition]; !kept {
				return true
			}
		}
	}
	return false
}

func totals(lanes map[*instance]map[int32]int) (n int) {
	for _, of := range lanes {
		n += total(of)
	}
	return n
}

func total(lanes map[int32]int) (n int) {
	for _, inFlight := range lanes {
		n += inFlight
	}
	return n
}
