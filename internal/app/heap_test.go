package app

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheHeapGrowsGenerouslyWithinItsHeadroom(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0:            100, // not known yet
		1:            200,
		20 << 20:     200,
		headroom / 2: 200,
		48 << 20:     150,
		headroom:     100,
		1 << 40:      100,
	} {
		require.Equal(t, want, percentFor(live), "%d bytes alive", live)
	}
}

// The percentage follows what lives, up and down, and small changes are left alone.
func TestThePercentageFollowsWhatLives(t *testing.T) {
	t.Parallel()
	lives := []uint64{0, 16 << 20, 17 << 20, 48 << 20, 49 << 20, 128 << 20, 16 << 20}
	ctx, cancel := context.WithCancel(t.Context())
	next := 0
	live := func() uint64 {
		next++
		if next == len(lives) {
			cancel()
		}
		return lives[min(next, len(lives))-1]
	}
	var set []int
	tend(ctx, live, func(percent int) int {
		set = append(set, percent)
		return 0
	})
	require.Equal(t, []int{200, 150, 100, 200}, set)
}

func TestTheLiveHeapIsKnown(t *testing.T) {
	t.Parallel()
	kept := make([]byte, 8<<20)
	runtime.GC()
	require.Greater(t, liveHeap()(), uint64(len(kept)))
	runtime.KeepAlive(kept)
}

// Go lets the heap grow by a percentage of the stacks, too: what it is must not go beyond the headroom by them.
func TestStacksCountAsWhatTheHeapGrowsBy(t *testing.T) {
	t.Parallel()
	const calls, deep = 1000, 128
	release, ready := make(chan struct{}), make(chan struct{}, calls)
	for range calls {
		go func() {
			descend(deep, func() {
				ready <- struct{}{}
				<-release
			})
		}()
	}
	for range calls {
		<-ready
	}
	runtime.GC()
	counted := liveHeap()()
	close(release)
	require.Greater(t, counted, uint64(calls*deep<<10))
}

// descend takes a kilobyte of stack for each step down.
func descend(steps int, then func()) byte {
	var kilobyte [1 << 10]byte
	if steps == 0 {
		then()
		return 0
	}
	kilobyte[steps%len(kilobyte)] = descend(steps-1, then)
	return kilobyte[0]
}

func TestWhoHasSetGOGCIsLeftAlone(t *testing.T) {
	t.Parallel()
	end := tendHeap(t.Context(), func(name string) string { return map[string]string{"GOGC": "50"}[name] })
	end() // nothing runs that it would wait for
}
