package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// generous is by how much of what lives the heap may grow before it is collected, in percent. Go's default is 100. To look
	// through everything that lives, and the stacks of a thousand calls in flight, twice as often costs a seventh of the throughput.
	generous = 200
	// headroom bounds, in bytes, what generosity may cost: the heap grows by no more, unless by default it would.
	headroom = 72 << 20
	// heapLook is how often the live heap is looked at: it doubles when a slow provider follows a fast one, and a goal that was
	// set before would be out of proportion for that long.
	heapLook = 100 * time.Millisecond
	// defaultPercent is Go's.
	defaultPercent = 100
)

// tendHeap lets the heap grow further than by default, within bounds, before it is collected. It returns what ends that. Who has set
// GOGC has decided otherwise; GOMEMLIMIT holds either way.
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

// percentFor is GOGC for what it is a percentage of, in bytes.
func percentFor(live uint64) int {
	if live == 0 { // nothing was collected yet
		return defaultPercent
	}
	return int(min(max(headroom*100/live, defaultPercent), generous))
}

// liveHeap returns what the latest collection found alive, in bytes, and what it found that by: GOGC is a percentage of stacks
// and globals too, and each call in flight has its stacks.
func liveHeap() func() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	return func() uint64 {
		metrics.Read(samples)
		live := samples[0].Value.Uint64()
		if live == 0 {
			return 0
		}
		return live + samples[1].Value.Uint64() + samples[2].Value.Uint64()
	}
}
