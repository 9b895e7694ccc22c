package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// retried runs the worker again and again until the retry horizon has passed.
func retried(w *world, i *instance) {
	for range 24 {
		w.clock.advance(time.Hour)
		i.settle()
	}
}

func endless(s step) []step {
	steps := make([]step, 100)
	for n := range steps {
		steps[n] = s
	}
	return steps
}

func TestRetriesEndInALetter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		ends   string
		later  string // what becomes of a later event of the order
	}{
		"that keeps the order when it may be charged": {times, "parked", ""},
		"that frees the order when it surely was not": {refuses, "held", "captured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a, b := w.event(1, "10.50"), w.event(1, "10.50")
			w.provider.script(a.id, endless(tt.answer)...)
			one.mustBill(a.record)
			retried(w, one)
			require.Equal(t, tt.ends, w.intent(a).State)
			w.letter(a.record, domain.ReasonRetriesExhausted)

			posts := w.provider.postsOf(a.id)
			w.clock.advance(48 * time.Hour)
			one.settle()
			require.Equal(t, posts, w.provider.postsOf(a.id), "a letter is an operator's")
			one.mustBill(b.record)
			require.Equal(t, tt.later, w.status(b))
			w.balanced()
		})
	}
}

// The horizon ends retries, not outages of ours: whatever kept us from trying, the
// provider is asked once more before an operator is.
func TestOutageOfOursBeyondTheHorizonParksNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ first, next step }{
		"stopped, after a refused connection":  {refuses, captures},
		"stopped, after an unknown answer":     {losing(captures), captures},
		"paused by the provider":               {forbids, captures},
		"paused by the provider, and declined": {forbids, declines},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two")
			a := w.event(1, "10.50")
			w.provider.script(a.id, tt.first, tt.next)
			one.mustBill(a.record)
			w.clock.advance(w.policy.RetryHorizon + time.Hour)
			two.settle()
			require.Empty(t, w.letters())
			require.NotEmpty(t, w.status(a))
			w.balanced()
		})
	}
}

// A sibling that waits for a parked event would wait for ever. It claims no
// order, so that its letter meets no unique key.
func TestEventThatWaitsForAParkedOneIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	w.provider.script(a.id, conflicts)
	one.mustBill(a.record)
	require.Equal(t, "parked", w.intent(a).State)
	one.mustBill(b.record)
	retried(w, one)
	require.Equal(t, "parked", w.intent(a).State)
	require.Equal(t, "held", w.intent(b).State)
	require.Len(t, w.letters(), 2)
	require.Equal(t, string(domain.ReasonRetriesExhausted), w.letters()[1].Reason)
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}

// The provider may have forgotten the key by now: the same request could be a
// second charge.
func TestKeyThatMayBeForgottenIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sleeps time.Duration
		posts  int
		reason domain.Reason
	}{
		"forgotten":                      {24 * time.Hour, 1, domain.ReasonNeedsReconciliation},
		"forgotten while the lease runs": {24*time.Hour - 15*time.Second, 1, domain.ReasonNeedsReconciliation},
		"just remembered":                {24*time.Hour - 16*time.Second, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one", func(p *domain.Policy) { p.RetryHorizon = 7 * 24 * time.Hour })
			a := w.event(1, "10.50")
			w.provider.script(a.id, losing(captures))
			one.mustBill(a.record)
			w.clock.advance(tt.sleeps)
			one.settle()
			require.Equal(t, tt.posts, w.provider.postsOf(a.id))
			if tt.reason == "" {
				w.final(a, "captured")
			} else {
				require.Equal(t, "parked", w.intent(a).State)
				w.letter(a.record, tt.reason)
			}
			w.balanced()
		})
	}
}

// What was surely never sent has no key to forget.
func TestKeyThatWasNeverSentIsSentHoweverOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one", func(p *domain.Policy) { p.RetryHorizon = 7 * 24 * time.Hour })
	a := w.event(1, "10.50")
	w.provider.script(a.id, refuses)
	one.mustBill(a.record)
	w.clock.advance(48 * time.Hour)
	one.settle()
	w.final(a, "captured")
	w.balanced()
}

// A release that would send other bytes for the same event must not send them.
func TestIntentOfAnotherRequestIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, losing(captures))
	one.mustBill(a.record)
	w.exec("UPDATE charge_intent SET request_hash = sha256('another')")
	w.clock.advance(time.Hour)
	one.settle()
	require.Equal(t, 1, w.provider.postsOf(a.id))
	require.Equal(t, "parked", w.intent(a).State)
	w.letter(a.record, domain.ReasonNeedsReconciliation)
	w.balanced()
}

// The provider says when to come back, and is believed within reason.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ asked, waits time.Duration }{
		"as asked":            {5 * time.Minute, 5 * time.Minute},
		"at most for an hour": {24 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a := w.event(1, "10.50")
			w.provider.script(a.id, replies(domain.Answer{Kind: domain.Unknown, Status: 429, MaybeSent: true, RetryAfter: tt.asked}))
			one.mustBill(a.record)
			w.clock.advance(tt.waits - time.Second)
			one.settle()
			require.Equal(t, 1, w.provider.postsOf(a.id))
			w.clock.advance(time.Second)
			one.settle()
			w.final(a, "captured")
			w.balanced()
		})
	}
}
