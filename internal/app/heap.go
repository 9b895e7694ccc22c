package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapFloor is the heap that is not worth being collected. What lives in it at full speed, some 20 MB of records that wait,
	// is found again some ten times a second at Go's default of twice that: a tenth of the processor time of the whole service.
	heapFloor = 64 << 20
	// heapLook is how often the live heap is looked at: it doubles when a slow provider follows a fast one, and a goal that was
	// set before would be out of proportion for that long.
	heapLook = 100 * time.Millisecond
	// defaultPercent is Go's: the heap may grow to twice what lives. Above the floor nothing else holds.
	defaultPercent = 100
	// mostPercent bounds what a start from next to nothing makes of the first goal.
	mostPercent = 400
)

// tendHeap lets the heap grow to heapFloor before it is collected, and leaves it to Go above that. It returns what ends it. Who
// has set GOGC has decided otherwise; GOMEMLIMIT holds either way.
func tendHeap(ctx context.Context, getenv func(string) string) (end func()) {
	if getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(defaultPercent)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tend(ctx, liveHeap(), debug.SetGCPercent)
	}()
	return func() {
		cancel()
		<-done
		debug.SetGCPercent(before)
	}
}

// tend sets the percentage anew whenever it should differ by a tenth: to set it stops everything for an instant.
func tend(ctx context.Context, live func() uint64, set func(percent int) int) {
	look := time.NewTicker(heapLook)
	defer look.Stop()
	for now := defaultPercent; ; {
		if percent := percentFor(live()); 10*max(percent-now, now-percent) > now {
			set(percent)
			now = percent
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// percentFor is GOGC for what lives, in bytes: by how much of it the heap may grow.
func percentFor(live uint64) int {
	if live == 0 { // nothing was collected yet
		return defaultPercent
	}
	if live >= heapFloor/2 {
		return defaultPercent
	}
	return min(int(heapFloor*100/live)-100, mostPercent)
}

// liveHeap returns what the latest collection found alive, in bytes.
func liveHeap() func() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	return func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
}
