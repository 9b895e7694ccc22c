package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// twoLeases is an event whose second lease runs while the owner of the first
// still waits for its answer. Both owners bear the same name, as instances of a
// deployment may.
type twoLeases struct {
	*world
	a, b          *instance
	event         event
	first, second *running
	one, two      *gateway
}

func newTwoLeases(t *testing.T, first, second step) *twoLeases {
	t.Helper()
	w := newWorld(t)
	l := &twoLeases{world: w, a: w.instance("billing"), b: w.instance("billing"), event: w.event(1, "10.50"), one: newGateway(), two: newGateway()}
	w.provider.script(l.event.id, refuses, l.one.holding(first), l.two.holding(second))
	l.a.mustBill(l.event.record)

	w.clock.advance(time.Minute)
	l.first = l.a.run()
	await(t, l.one.arrived)
	l.first.cancel() // it must not take its own intent over
	w.clock.advance(w.policy.Lease)
	l.second = l.b.run()
	await(t, l.two.arrived)
	return l
}

// answer lets the call of a lease end, and waits until its answer is dealt with.
func (l *twoLeases) answer(g *gateway, r *running) {
	l.t.Helper()
	close(g.release)
	r.stop()
}

func TestLateAnswerOfAnEarlierLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]step{
		"rejected": rejects, "declined": replies(domain.Answer{Kind: domain.Declined, Status: 402}),
		"not sent": refuses, "unknown": times, "key conflict": conflicts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTwoLeases(t, late, captures)
			before := l.intent(l.event)
			require.Equal(t, "calling", before.State)
			l.answer(l.one, l.first)
			require.Equal(t, before, l.intent(l.event))
			require.Empty(t, l.letters())

			l.answer(l.two, l.second)
			l.final(l.event, "captured")
			l.balanced()
		})
	}
}

// Money that was taken is written down whoever asked for it, and the answers of
// later leases find it there.
func TestLateCaptureOfAnEarlierLeaseIsFinal(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]step{
		"captured by the same key": captures, "not sent": refuses, "unknown": times, "rejected": rejects,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTwoLeases(t, captures, second)
			l.answer(l.one, l.first)
			l.final(l.event, "captured")
			l.answer(l.two, l.second)
			l.final(l.event, "captured")
			require.Empty(t, l.letters())
			l.balanced()
		})
	}
}

// A token that outlived its lease would let the first owner write under the second.
func TestEveryLeaseHasATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, times, times, times)
	one.mustBill(a.record)
	seen := map[string]bool{w.intent(a).Token.String(): true}
	for range 2 {
		w.clock.advance(time.Hour)
		one.settle()
		seen[w.intent(a).Token.String()] = true
	}
	require.Len(t, seen, 3)
}
