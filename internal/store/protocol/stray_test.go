package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// strayed brings about what a process leaves behind that lost its transaction, opened an intent for
// an event that end makes final elsewhere, and was killed before it looked again. The event is of order 1.
func strayed(t *testing.T, w *world, end func(*instance, event)) event {
	t.Helper()
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	reached, release := one.seam.pauseAt(openBegins)
	one.seam.once(openEnds, one.seam.kill)
	lost := one.start(a.record)
	await(t, reached)
	w.terminateMain()
	end(two, a)
	close(release)
	require.Error(t, await(t, lost))
	return a
}

// after bills another event of the order first.
func after(amount string, end func(*instance, event)) func(*instance, event) {
	return func(i *instance, e event) {
		i.mustBill(i.world.event(e.order, amount).record)
		end(i, e)
	}
}

// The event is final by another process, by whatever way there is: the stray is taken away once its
// lease is over, whoever has died, and it costs no call.
func TestAStrayIntentOfAnEventThatIsFinalIsEnded(t *testing.T) {
	t.Parallel()
	billed := func(i *instance, e event) { i.mustBill(e.record) }
	answered := func(s step) func(*instance, event) {
		return func(i *instance, e event) {
			i.world.provider.script(e.id, s)
			i.mustBill(e.record)
		}
	}
	kept := func(s step) func(*instance, event) {
		return func(i *instance, e event) {
			i.world.provider.script(e.id, s)
			i.seam.once(mainCommits, func() error { return errLost })
			require.ErrorIs(i.t, i.bill(e.record), errLost)
			require.Equal(i.t, "answered", i.world.intent(e).State)
			i.mustBill(e.record)
		}
	}
	given := func(outcome domain.Outcome, first step) func(*instance, event) {
		return func(i *instance, e event) {
			i.world.provider.script(e.id, first)
			i.mustBill(e.record)
			if outcome == domain.OutcomeCharged {
				i.world.provider.captures[e.id]++ // the operator saw it there
			}
			_, err := i.world.desk().discard(e.record, outcome)
			require.NoError(i.t, err)
		}
	}
	for name, tt := range map[string]struct {
		end   func(*instance, event)
		ends  string
		later string // what becomes of a later event of the order, of the same amount
	}{
		"captured":                     {billed, "captured", "duplicate_order"},
		"declined":                     {answered(declines), "declined", "captured"},
		"captured, by a stored answer": {kept(captures), "captured", "duplicate_order"},
		"declined, by a stored answer": {kept(declines), "declined", "captured"},
		"by the worker": {func(i *instance, e event) {
			i.world.provider.script(e.id, refuses)
			i.mustBill(e.record)
			i.world.clock.advance(time.Minute)
			i.settle()
		}, "captured", "duplicate_order"},
		"a duplicate of its order": {after("10.50", billed), "duplicate_order", "duplicate_order"},
		"discarded":                {given("", rejects), "discarded", "captured"},
		"discarded, nobody knows":  {given(domain.OutcomeUnknown, conflicts), "discarded", "held"},
		"captured outside":         {given(domain.OutcomeCharged, conflicts), "captured", "duplicate_order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := strayed(t, w, tt.end)
			in := w.intent(a)
			require.Equal(t, "calling", in.State, "it is there")
			require.False(t, in.Claimed)
			three, posts := w.instance("three"), w.provider.postsOf(a.id)
			if w.clock.Now().Before(*in.LeaseUntil) {
				three.settle()
				require.Equal(t, in, w.intent(a), "its owner may be about to look again")
			}
			w.clock.advance(w.policy.Lease)
			three.settle()
			w.final(a, tt.ends)
			require.Equal(t, posts, w.provider.postsOf(a.id))
			w.balanced()
			later := w.event(a.order, "10.50")
			three.mustBill(later.record)
			if tt.later == "held" {
				require.Equal(t, "held", w.intent(later).State)
				return
			}
			require.Equal(t, tt.later, w.status(later), "the order is as the event left it")
			w.balanced()
		})
	}
}

// An event that is parked keeps its intent's row, which keeps the stray out.
func TestNoIntentStraysBesideOneThatIsParked(t *testing.T) {
	t.Parallel()
	billed := func(i *instance, e event) { i.mustBill(e.record) }
	for name, tt := range map[string]struct {
		end    func(*instance, event)
		answer step
		state  string
		reason domain.Reason
	}{
		"an order conflict": {after("7.00", billed), captures, "held", domain.ReasonOrderConflict},
		"a rejection":       {billed, rejects, "held", domain.ReasonProviderRejected},
		"a key conflict":    {billed, conflicts, "parked", domain.ReasonIdempotencyConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := strayed(t, w, func(i *instance, e event) {
				w.provider.script(e.id, tt.answer)
				tt.end(i, e)
			})
			in := w.intent(a)
			require.Equal(t, tt.state, in.State)
			require.True(t, in.Claimed)
			w.clock.advance(w.policy.Lease)
			w.instance("three").settle()
			require.Equal(t, in, w.intent(a))
			w.letter(a.record, tt.reason)
			w.balanced()
		})
	}
}

// The owner was only slow: it finds its row gone, and the event final.
func TestTheOwnerOfAStrayThatComesLateSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a := w.event(1, "10.50")
	opening, open := one.seam.pauseAt(openBegins)
	standing, look := one.seam.pauseAt(openEnds)
	lost := one.start(a.record)
	await(t, opening)
	w.terminateMain()
	two.mustBill(a.record)
	close(open)
	await(t, standing)
	w.clock.advance(w.policy.Lease)
	two.settle()
	w.final(a, "captured")
	close(look)
	require.Error(t, await(t, lost))
	one.mustBill(a.record)
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	require.Empty(t, w.letters())
	w.balanced()
}

// Until the event is final, the claim that comes with the record's redelivery has need of the intent.
func TestAnIntentIsNoStrayWhileItsEventIsNotFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	one.seam.once(openEnds, one.seam.kill)
	require.ErrorIs(t, one.bill(a.record), errLost)
	two.mustBill(b.record) // which is final
	w.clock.advance(time.Hour)
	two.settle()
	require.Equal(t, "calling", w.intent(a).State)
	two.mustBill(a.record)
	w.clock.advance(w.policy.Lease)
	two.settle()
	w.final(a, "captured")
	w.balanced()
}

// An operator gives an event up whose record could not be read, at the moment when another group
// begins with a record that can: one of them is too late, and whoever it is takes nothing.
func TestGivingUpARecordMeetsAnotherGroupsBeginning(t *testing.T) {
	t.Parallel()
	elsewhere := func(p *domain.Policy) { p.Group = "another-group" }
	t.Run("the operator is first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one", elsewhere), w.desk()
		a := w.event(1, "10.50")
		poison(w, a)
		again := a
		again.record = w.republished(1, a.record)
		about, finish := d.seam.pauseAt(sideCommits)
		opening, open := one.seam.pauseAt(openBegins)
		given := make(chan error, 1)
		go func() { _, err := d.discard(a.record, ""); given <- err }()
		await(t, about)
		done := one.start(again.record)
		await(t, opening)
		close(open)
		require.Eventually(t, func() bool {
			var waits bool
			w.scan(`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
				AND application_name = 'billing-side' AND wait_event_type = 'Lock')`, nil, &waits)
			return waits || w.provider.postsOf(a.id) > 0
		}, patience, time.Millisecond, "the group meets the operator's row, or it has sent")
		close(finish)
		require.NoError(t, await(t, given))
		require.NoError(t, await(t, done))
		w.clock.advance(time.Minute)
		one.settle()
		require.Zero(t, w.provider.postsOf(a.id))
		require.Equal(t, "discarded", w.status(a))
		require.Empty(t, w.intents(a))
	})
	t.Run("the group is first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one, d := w.instance("one", elsewhere), w.desk()
		a := w.event(1, "10.50")
		poison(w, a)
		again := a
		again.record = w.republished(1, a.record)
		looked, write := d.seam.pauseAt(sideLooked)
		given := make(chan error, 1)
		go func() { _, err := d.discard(a.record, ""); given <- err }()
		await(t, looked)
		call := newGateway()
		w.provider.script(a.id, call.holding(captures))
		done := one.start(again.record)
		await(t, call.arrived)
		close(write)
		err := await(t, given)
		conflict(t, err, "at the same moment")
		close(call.release)
		require.NoError(t, await(t, done))
		w.final(a, "captured")
		require.Equal(t, 1, w.provider.postsOf(a.id))
	})
}
