package domain

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHandsDoEveryTaskAndDrainWaitsForThem(t *testing.T) {
	t.Parallel()
	h := newHands()
	var done atomic.Int32
	gate := make(chan struct{})
	for range 100 {
		h.do(func() {
			<-gate
			done.Add(1)
		})
	}
	close(gate)
	h.drain()
	require.EqualValues(t, 100, done.Load())
	h.do(func() { done.Add(1) })
	h.drain()
	require.EqualValues(t, 101, done.Load(), "late work is done all the same")
}

func TestAHandThatRestsTakesTheNextTask(t *testing.T) {
	t.Parallel()
	h := newHands()
	require.Eventually(t, func() bool {
		done := make(chan struct{})
		h.busy.Add(1)
		select {
		case h.work <- func() { close(done) }: // somebody rests
			<-done
			return true
		default:
			h.busy.Done()
			h.do(func() {})
			return false
		}
	}, 5*time.Second, time.Microsecond)
	h.drain()
}
