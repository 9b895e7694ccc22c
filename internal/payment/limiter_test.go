package payment_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
)

func TestTheLimiterNeverExceedsItsMost(t *testing.T) {
	t.Parallel()
	const most = 20
	l := payment.NewLimiter(most)
	var in, peak atomic.Int64
	var all sync.WaitGroup
	for range 400 {
		all.Go(func() {
			p := l.Enter(t.Context(), t.Context(), t.Context())
			now := in.Add(1)
			for {
				was := peak.Load()
				if now <= was || peak.CompareAndSwap(was, now) {
					break
				}
			}
			in.Add(-1)
			p.Leave(domain.Answer{Kind: domain.Captured, Status: 200, Posts: 1})
		})
	}
	all.Wait()
	require.LessOrEqual(t, peak.Load(), int64(most))
	require.Positive(t, peak.Load())
}

func TestWaitingForAPlaceEndsWithEitherContext(t *testing.T) {
	t.Parallel()
	l := payment.NewLimiter(1)
	held := l.Enter(t.Context(), t.Context(), t.Context())
	require.NotNil(t, held)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Nil(t, l.Enter(t.Context(), ended, t.Context()), "stopped")
	require.Nil(t, l.Enter(t.Context(), t.Context(), ended), "the gate closed")
	require.Nil(t, l.Enter(ended, t.Context(), t.Context()), "out of time")
	held.Leave(domain.Answer{})
	require.NotNil(t, l.Enter(t.Context(), t.Context(), t.Context()))
}

func TestAThrottledChargeKeepsItsPlace(t *testing.T) {
	t.Parallel()
	l := payment.NewLimiter(1)
	asked := 150 * time.Millisecond
	began := time.Now()
	l.Enter(t.Context(), t.Context(), t.Context()).Leave(domain.Answer{Kind: domain.Unknown, Status: 429, Posts: 1, RetryAfter: asked})
	require.NotNil(t, l.Enter(t.Context(), t.Context(), t.Context()))
	require.GreaterOrEqual(t, time.Since(began), asked)
}
