package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// endsAsDuplicateOrder and endsInConflict are what becomes of the second event.
func endsAsDuplicateOrder(w *world, e event) { w.final(e, "duplicate_order") }

func endsInConflict(w *world, e event) {
	require.Equal(w.t, "held", w.intent(e).State)
	require.Empty(w.t, w.status(e))
	w.letter(e.record, domain.ReasonOrderConflict)
}

type second struct {
	amount string
	ends   func(*world, event)
}

func seconds() map[string]second {
	return map[string]second{
		"of the same amount":  {"10.50", endsAsDuplicateOrder},
		"with another amount": {"10.51", endsInConflict},
	}
}

func TestSecondEventOfAnOrderIsNotCharged(t *testing.T) {
	t.Parallel()
	for name, tt := range seconds() {
		t.Run(name+", later", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a, b := w.event(1, "10.50"), w.event(1, tt.amount)
			one.mustBill(a.record)
			one.mustBill(b.record)
			w.final(a, "captured")
			tt.ends(w, b)
			require.Zero(t, w.provider.postsOf(b.id))
			w.balanced()
		})
		t.Run(name+", in the same batch", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			a, b := w.event(1, "10.50"), w.event(1, tt.amount)
			one.mustBill(a.record, b.record)
			w.final(a, "captured")
			require.Equal(t, "waiting", w.intent(b).State)
			w.clock.advance(time.Minute)
			one.settle()
			tt.ends(w, b)
			require.Zero(t, w.provider.postsOf(b.id))
			w.balanced()
		})
		t.Run(name+", though whoever takes it dies of it", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two")
			a, b := w.event(1, "10.50"), w.event(1, tt.amount)
			one.mustBill(a.record, b.record)
			w.clock.advance(time.Minute)
			died := make(chan struct{})
			one.seam.once(sideCommitted, func() error { defer close(died); return one.seam.kill() })
			worker := one.run()
			await(t, died)
			worker.stop()

			w.clock.advance(time.Hour)
			two.settle()
			tt.ends(w, b) // nothing of it was sent, and nothing looks as if it had been
			require.Zero(t, w.provider.postsOf(b.id))
			w.balanced()
		})
		t.Run(name+", at once in two partitions", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := w.instance("one"), w.instance("two")
			a, b := w.event(1, "10.50"), w.event(1, tt.amount)
			b.record = w.republished(1, b.record)
			call := newGateway()
			w.provider.script(a.id, call.holding(captures))
			first := one.start(a.record)
			await(t, call.arrived)
			two.mustBill(b.record) // it does not wait for the other's call
			require.Equal(t, "waiting", w.intent(b).State)
			w.clock.advance(time.Second)
			two.settle()
			require.Equal(t, "waiting", w.intent(b).State)

			close(call.release)
			require.NoError(t, await(t, first))
			w.clock.advance(time.Minute)
			two.settle()
			w.final(a, "captured")
			tt.ends(w, b)
			require.Zero(t, w.provider.postsOf(b.id))
			w.balanced()
		})
	}
}

// Both instances see a free order, and both open: the unique key lets one in.
func TestTwoEventsOfOneOrderThatOpenTogetherAreCapturedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(1, "10.50")
	b.record = w.republished(1, b.record)
	gates := make(chan struct{})
	var reached []chan struct{}
	for _, i := range []*instance{one, two} {
		at := make(chan struct{})
		reached = append(reached, at)
		i.seam.once(openBegins, func() error { close(at); <-gates; return nil })
	}
	first, second := one.start(a.record), two.start(b.record)
	await(t, reached[0])
	await(t, reached[1])
	close(gates)
	require.NoError(t, await(t, first))
	require.NoError(t, await(t, second))
	w.clock.advance(time.Minute)
	one.settle()
	require.Equal(t, 1, w.provider.capturesOfOrder(1))
	require.Equal(t, 1, w.provider.postsOf(a.id)+w.provider.postsOf(b.id))
	require.ElementsMatch(t, []string{"captured", "duplicate_order"}, []string{w.status(a), w.status(b)})
	w.balanced()
}

func TestLaterEventOfADeclinedOrderIsCharged(t *testing.T) {
	t.Parallel()
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a, b := w.event(1, "10.50"), w.event(1, "10.50")
		w.provider.script(a.id, declines)
		one.mustBill(a.record)
		one.mustBill(b.record)
		w.final(a, "declined")
		w.final(b, "captured")
		w.balanced()
	})
	t.Run("in the same batch", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a, b := w.event(1, "10.50"), w.event(1, "10.50")
		w.provider.script(a.id, declines)
		one.mustBill(a.record, b.record)
		w.clock.advance(time.Minute)
		one.settle()
		w.final(a, "declined")
		w.final(b, "captured")
		w.balanced()
	})
}

// The order was captured by somebody else while this event may have been: two
// charges may stand, and only a human can tell.
func TestEventThatMayBeChargedBesideACapturedOrderIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, times)
	one.mustBill(a.record)
	w.chargedElsewhere(a)
	w.clock.advance(time.Hour)
	one.settle()
	require.Equal(t, "parked", w.intent(a).State)
	require.Equal(t, 1, w.provider.postsOf(a.id), "it is not sent again")
	w.letter(a.record, domain.ReasonNeedsReconciliation)
}
