package run

import "context"

// backlogShare is the part of the work within which turns begin where all records are sent at once: some are to wait in each
// partition when the last one ends, and partitions are not worked off alike.
const backlogShare = 0.5

// waiting is how many records in each partition, at least, nobody has begun with. 0 where that is not known.
func (r *roller) waiting(ctx context.Context) int64 {
	lags, err := r.watcher.lags(ctx)
	if err != nil {
		return 0
	}
	for _, i := range r.members.running() {
		lanes, err := i.lanes(ctx)
		if err != nil {
			continue // it is about to end, or has not come up: what it holds is not counted as waiting again
		}
		for partition, inFlight := range lanes {
			lags[partition] -= int64(inFlight)
		}
	}
	return least(lags)
}

// least is the smallest number of any partition, and not below 0.
func least(lags map[int32]int64) int64 {
	n, first := int64(0), true
	for _, lag := range lags {
		if first || lag < n {
			n, first = lag, false
		}
	}
	return max(n, 0)
}
