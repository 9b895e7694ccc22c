package domain

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	timedOut = Answer{Kind: Unknown, MaybeSent: true, Posts: 1, Detail: "no answer: timeout"}
	taken    = Answer{Kind: Captured, Status: 201, Posts: 1}
	probing  = Pass{probe: true}
)

func failingGate(t *testing.T) (*Gate, *heldClock) {
	t.Helper()
	clock := &heldClock{now: noon}
	g := NewGate(clock)
	require.True(t, g.observe(Pass{}, timedOut, true))
	return g, clock
}

func TestAFailingProviderClosesTheGateAndSaysSo(t *testing.T) {
	t.Parallel()
	g, clock := failingGate(t)
	clock.move(time.Minute)
	require.False(t, g.observe(Pass{}, timedOut, true), "it is closed already")
	require.Equal(t, GateState{
		Closed: true, Cause: CauseFailing, Since: noon, Counts: GateCounts{Failures: 1},
		Reason: "most charges end without a definite answer; the latest: no answer: timeout",
	}, g.State())
	require.False(t, g.allows(Pass{}))
	require.True(t, g.allows(probing))
}

// What was in flight when it closed may end well: that is why most had to fail.
func TestOnlyADefiniteAnswerToAProbeOpensTheGateOfAFailingProvider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pass   Pass
		answer Answer
		opens  bool
	}{
		"a capture":                             {probing, taken, true},
		"a decline":                             {probing, Answer{Kind: Declined, Status: 402}, true},
		"a rejection":                           {probing, Answer{Kind: Rejected, Status: 400}, true},
		"a server error not":                    {probing, Answer{Kind: Unknown, Status: 503}, false},
		"too many requests not":                 {probing, Answer{Kind: Unknown, Status: 429}, false},
		"a refused connection not":              {probing, Answer{Kind: NotSent}, false},
		"what was withheld not":                 {probing, Answer{Kind: Withheld}, false},
		"a capture that was in flight not":      {Pass{}, taken, false},
		"a server error that was in flight not": {Pass{}, Answer{Kind: Unknown, Status: 500}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, clock := failingGate(t)
			clock.move(time.Minute)
			require.Equal(t, tc.opens, g.observe(tc.pass, tc.answer, false))
			s := g.State()
			require.Equal(t, !tc.opens, s.Closed)
			require.Equal(t, tc.opens, s.Since.Equal(noon.Add(time.Minute)))
			require.Equal(t, tc.opens, g.allows(Pass{}))
		})
	}
}

// A provider that fails may begin to refuse us, and the other way round.
func TestEachCauseEndsByItself(t *testing.T) {
	t.Parallel()
	g, _ := failingGate(t)
	require.True(t, g.observe(probing, refused, false), "another cause is news")
	require.Equal(t, CauseRefused, g.State().Cause)
	require.NotEmpty(t, g.State().Failing, "the failure is told beside it")
	require.True(t, g.observe(probing, Answer{Kind: Unknown, Status: 503}, false))
	require.Equal(t, CauseFailing, g.State().Cause, "it does not refuse us any more, and fails still")
	require.True(t, g.observe(probing, refused, false))
	require.True(t, g.observe(probing, taken, false))
	require.False(t, g.State().Closed)
	require.Equal(t, GateCounts{Refusals: 2, Failures: 1, Probes: 4}, g.State().Counts)
}

func TestAProbeThatNothingWasSentWithMayGoAgainAtOnce(t *testing.T) {
	t.Parallel()
	g, clock := failingGate(t)
	clock.move(time.Second)
	_, ok := g.takeProbe()
	require.True(t, ok)
	_, ok = g.takeProbe()
	require.False(t, ok)
	g.returnProbe()
	_, ok = g.takeProbe()
	require.True(t, ok)
}

// A probe that is left to the lanes is the only one of its second, whenever a
// record comes for it.
func TestAProbeThatIsLeftIsTakenBackBeforeTheNext(t *testing.T) {
	t.Parallel()
	g, clock := failingGate(t)
	clock.move(time.Second)
	_, ok := g.takeProbe()
	require.True(t, ok)
	g.leaveProbe()
	clock.move(time.Second)
	_, ok = g.takeProbe()
	require.True(t, ok)
	requireNoProbe(t, g)

	g.leaveProbe()
	clock.move(900 * time.Millisecond)
	_, err := g.Admit(t.Context())
	require.NoError(t, err)
	clock.move(900 * time.Millisecond)
	_, ok = g.takeProbe()
	require.False(t, ok, "the second began when the record went out")
	clock.move(100 * time.Millisecond)
	_, ok = g.takeProbe()
	require.True(t, ok)
}

// stubBreaker trips when it is told to.
type stubBreaker struct{ trips, resets int }

func (b *stubBreaker) Record(a Answer) bool {
	b.trips--
	return !a.Kind.Definite() && b.trips == 0
}

func (b *stubBreaker) Reset() { b.resets++ }

// slowProvider answers when it is let.
type slowProvider struct {
	asked   chan ChargeRequest
	answers chan Answer
}

func (p *slowProvider) Charge(_ context.Context, r ChargeRequest) Answer {
	p.asked <- r
	return <-p.answers
}

// Those that wait for a place when the gate closes are withheld there and then;
// the one that is out ends as it ends.
func TestCallsThatWaitForAPlaceAreWithheldWhenTheGateCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		provider := &slowProvider{asked: make(chan ChargeRequest, 9), answers: make(chan Answer)}
		breaker := &stubBreaker{trips: 1}
		c := &caller{
			provider: provider, gate: NewGate(SystemClock{}), limiter: newFixedLimiter(1), breaker: breaker,
			log: slog.New(slog.DiscardHandler),
		}
		answers := make(chan Answer, 9)
		call := func(p Pass) { answers <- c.call(t.Context(), t.Context(), p, ChargeRequest{}) }
		for range 4 {
			go call(Pass{})
		}
		synctest.Wait()
		require.Len(t, provider.asked, 1, "one place")
		require.False(t, (<-provider.asked).Once)
		c.gate.observe(Pass{}, timedOut, true)
		for range 3 {
			require.Equal(t, Answer{Kind: Withheld, Detail: "intake is paused"}, <-answers)
		}
		provider.answers <- taken
		require.Equal(t, taken, <-answers)
		require.True(t, c.gate.State().Closed)
		require.Zero(t, breaker.resets)

		go call(probing)
		require.True(t, (<-provider.asked).Once, "a probe is one request")
		provider.answers <- taken
		require.True(t, (<-answers).Probe)
		require.False(t, c.gate.State().Closed)
		require.Equal(t, 1, breaker.resets)
	})
}

// However long a provider is down, its probes end nobody's retries, and put nobody
// off for as long as it has been down.
func TestAFailedProbeParksNothingAndPutsNobodyOffForLong(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]Answer{
		"not sent": {Kind: NotSent, Detail: "not sent: connection refused"},
		"unknown":  {Kind: Unknown, MaybeSent: true, Posts: 1, Detail: "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for probe, age := range map[bool]time.Duration{true: 48 * time.Hour, false: 19 * time.Hour} {
				e, in := leased()
				in.Claimed, in.MaybeSent = true, true
				in.FirstAttemptAt = noon.Add(-age)
				answer.Probe = probe
				r := newRuling(&bounds, noon)
				r.settle(situation{event: e, intent: in, claims: true}, in.Token, answer)
				require.Empty(t, r.letters)
				due := r.writes.Update[0].DueAt.Sub(noon)
				if probe {
					require.LessOrEqual(t, due, probeTurn)
					require.GreaterOrEqual(t, due, probeTurn/2)
				} else {
					require.Greater(t, due, time.Minute)
				}
			}
		})
	}
}

func TestAProbeHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	e, in := leased()
	in.Claimed = true
	r := newRuling(&bounds, noon)
	r.settle(situation{event: e, intent: in, claims: true}, in.Token,
		Answer{Kind: Unknown, Status: 503, MaybeSent: true, Posts: 1, Probe: true, RetryAfter: 2 * time.Minute})
	require.Equal(t, noon.Add(2*time.Minute), r.writes.Update[0].DueAt)
}
