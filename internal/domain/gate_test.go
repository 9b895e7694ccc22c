package domain

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// heldClock stands still until it is moved.
type heldClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *heldClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// observe takes an answer to a call without a probe's pass.
func observe(g *Gate, a Answer) bool { return g.observe(Pass{}, a, false) }

var refused = Answer{Kind: Misconfigured, Status: 401, Detail: "401: wrong key"}

func closedGate(t *testing.T) (*Gate, *heldClock) {
	t.Helper()
	clock := &heldClock{now: noon}
	g := NewGate(clock)
	require.True(t, observe(g, refused))
	return g, clock
}

func TestAnOpenGateAdmitsAtOnce(t *testing.T) {
	t.Parallel()
	g := NewGate(&heldClock{now: noon})
	closed, reason, since := g.Closed()
	require.False(t, closed)
	require.Empty(t, reason)
	require.Zero(t, since)
	pass, err := g.Admit(t.Context())
	require.NoError(t, err)
	require.Equal(t, 256, pass.Limit(256))
	require.True(t, g.allows(pass))
	_, probing := g.takeProbe()
	require.False(t, probing, "an open gate needs no probe")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Admit(over)
	require.ErrorIs(t, err, context.Canceled)
}

func TestOnlyARefusalOfUsClosesTheGate(t *testing.T) {
	t.Parallel()
	for kind := Unknown; kind <= Misconfigured; kind++ {
		g := NewGate(&heldClock{now: noon})
		require.Equal(t, kind == Misconfigured, observe(g, Answer{Kind: kind, Status: 400}), kind)
		closed, _, _ := g.Closed()
		require.Equal(t, kind == Misconfigured, closed, kind)
	}
}

func TestAClosedGateSaysWhyAndSinceWhen(t *testing.T) {
	t.Parallel()
	g, clock := closedGate(t)
	clock.move(time.Minute)
	require.False(t, observe(g, Answer{Kind: Misconfigured, Status: 404, Detail: "another"}), "it is closed already")
	closed, reason, since := g.Closed()
	require.True(t, closed)
	require.Equal(t, "401: wrong key", reason)
	require.Equal(t, noon, since)
	require.False(t, g.allows(Pass{}), "a batch that was admitted before sends nothing more")
	require.True(t, g.allows(Pass{probe: true}))
}

func TestAnyOtherAnswerOfTheProviderOpensTheGate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer Answer
		opens  bool
	}{
		"a capture":                        {Answer{Kind: Captured, Status: 201}, true},
		"a decline":                        {Answer{Kind: Declined, Status: 402}, true},
		"a server error":                   {Answer{Kind: Unknown, Status: 500}, true},
		"a refusal not":                    {Answer{Kind: Misconfigured, Status: 403}, false},
		"a timeout, which is no answer":    {Answer{Kind: Unknown}, false},
		"a refused connection not":         {Answer{Kind: NotSent}, false},
		"what we withheld ourselves not":   {Answer{Kind: Withheld}, false},
		"a redirect, which is one, not":    {Answer{Kind: Misconfigured, Status: 302, MaybeSent: true}, false},
		"a conflict of keys is about keys": {Answer{Kind: KeyConflict, Status: 422}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, clock := closedGate(t)
			clock.move(time.Minute)
			require.Equal(t, tc.opens, observe(g, tc.answer))
			closed, _, since := g.Closed()
			require.Equal(t, !tc.opens, closed)
			require.Equal(t, tc.opens, since.Equal(noon.Add(time.Minute)))
		})
	}
}

func TestEveryoneWaitsAtAClosedGateAndGoesOnWhenItOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := closedGate(t)
		passes := make(chan Pass, 8)
		errs := make(chan error, 9)
		for range 8 {
			go func() {
				pass, err := g.Admit(t.Context())
				errs <- err
				passes <- pass
			}()
		}
		over, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := g.Admit(over)
			errs <- err
		}()
		synctest.Wait()
		require.Empty(t, errs, "they wait")
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled, "who is stopping does not wait")
		synctest.Wait()
		require.Empty(t, errs, "all others still do")

		require.True(t, observe(g, Answer{Kind: Captured, Status: 200}))
		for range 8 {
			require.NoError(t, <-errs)
			require.Equal(t, Pass{}, <-passes)
		}
	})
}

func TestOneProbeASecondGoesOut(t *testing.T) {
	t.Parallel()
	g, clock := closedGate(t)
	take := func() bool {
		pass, ok := g.takeProbe()
		require.Equal(t, ok, pass.probe)
		return ok
	}
	require.False(t, take(), "the refusal itself was the first one")
	clock.move(time.Second - 1)
	require.False(t, take())
	clock.move(1)
	require.True(t, take())
	require.False(t, take(), "it is taken")
	clock.move(time.Hour)
	require.True(t, take())
	require.False(t, take(), "an hour without one is not made up for")

	require.True(t, observe(g, Answer{Kind: Unknown, Status: 503}))
	clock.move(time.Hour)
	require.False(t, take(), "an open gate needs none")
}

func TestAProbeThatIsLeftGoesToOneRecordOfOneLane(t *testing.T) {
	t.Parallel()
	g, _ := closedGate(t)
	g.leaveProbe()
	g.leaveProbe() // one waits already
	pass, err := g.Admit(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, pass.Limit(256))
	require.Equal(t, 0, pass.Limit(0))
	require.True(t, g.allows(pass))

	requireNoProbe(t, g)
}

func TestAProbeLeftFromAnEarlierClosureIsGone(t *testing.T) {
	t.Parallel()
	g, _ := closedGate(t)
	g.leaveProbe()
	require.True(t, observe(g, Answer{Kind: Captured, Status: 200}))
	require.True(t, observe(g, refused))
	requireNoProbe(t, g)
}

// requireNoProbe asks often: of a probe and the end of waiting, both there, a
// select takes either.
func requireNoProbe(t *testing.T, g *Gate) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		_, err := g.Admit(over)
		require.ErrorIs(t, err, context.Canceled)
	}
}
