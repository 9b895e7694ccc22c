package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// Wherever a process dies in a batch, the redelivered record is charged once,
// and never more attempts were made than are written down.
func TestBatchThatDiesAnywhereIsChargedOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at    point
		nth   int // passing of the point
		posts int // of both processes together
	}{
		"before it claims anything for sure":  {mainLooked, 1, 1},
		"before its intent":                   {openBegins, 1, 1},
		"after its intent":                    {openEnds, 1, 1},
		"after it looked again":               {mainLooked, 2, 1},
		"after the answer":                    {mainWrites, 1, 2},
		"after it wrote":                      {mainWrote, 1, 2},
		"before its commit":                   {mainCommits, 1, 2},
		"after its commit, before the offset": {mainCommitted, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two")
			a := w.event(1, "10.50")
			for range tt.nth - 1 {
				one.seam.once(tt.at, func() error { return nil })
			}
			one.seam.once(tt.at, one.seam.kill)
			require.ErrorIs(t, one.bill(a.record), errLost)

			two.mustBill(a.record)
			w.clock.advance(w.policy.Lease)
			two.settle()
			w.final(a, "captured")
			require.Equal(t, tt.posts, w.provider.postsOf(a.id))
			require.Equal(t, 1, w.provider.capturesOf(a.id))
			w.balanced()
		})
	}
}

// The same for the worker.
func TestWorkerThatDiesAnywhereIsSucceeded(t *testing.T) {
	t.Parallel()
	brief := func(p *domain.Policy) {
		p.ChargeBudget, p.CommitMargin, p.Lease = time.Second, 500*time.Millisecond, 2*time.Second
	}
	for name, tt := range map[string]struct {
		at    point
		nth   int
		posts int
	}{
		"before its lease":           {takeLooked, 1, 1},
		"as its lease commits":       {sideCommits, 1, 1},
		"after its lease":            {sideCommitted, 1, 1},
		"as it looks again":          {sideLooked, 1, 1},
		"after the answer":           {sideLooked, 2, 2},
		"before the answer's commit": {sideCommits, 3, 2},
		"after the answer's commit":  {sideCommitted, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one", brief), w.instance("two", brief)
			a := w.event(1, "10.50")
			w.provider.script(a.id, refuses)
			one.mustBill(a.record)
			w.clock.advance(time.Minute)
			died := make(chan struct{})
			for range tt.nth - 1 {
				one.seam.once(tt.at, func() error { return nil })
			}
			one.seam.once(tt.at, func() error { defer close(died); return one.seam.kill() })
			worker := one.run()
			await(t, died)
			worker.stop()

			w.clock.advance(time.Hour)
			two.settle()
			w.final(a, "captured")
			require.Equal(t, tt.posts, w.provider.postsOf(a.id))
			require.Equal(t, 1, w.provider.capturesOf(a.id))
			w.balanced()
		})
	}
}
