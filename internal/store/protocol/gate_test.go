package protocol_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// unsent requires that nothing was attempted: due now, and no letter.
func unsent(w *world, e event) {
	w.t.Helper()
	in := w.intent(e)
	require.Equal(w.t, "waiting", in.State)
	require.True(w.t, in.Claimed, "the record is durable, its offset may be committed")
	require.Zero(w.t, in.Attempts)
	require.Equal(w.t, w.clock.Now(), in.DueAt.UTC(), "due now")
	require.Zero(w.t, w.provider.postsOf(e.id))
	require.Empty(w.t, w.letters())
	w.balanced()
}

// closed returns a gate-closing refusal's aftermath: one event refused with 401.
func closed(w *world, i *instance) event {
	w.t.Helper()
	e := w.event(100, "10.50")
	w.provider.script(e.id, forbids)
	i.mustBill(e.record)
	shut, reason, _ := i.gate.Closed()
	require.True(w.t, shut)
	require.Contains(w.t, reason, "401")
	unsent(w, e)
	return e
}

func TestWhatWeDoNotSendIsNoAttempt(t *testing.T) {
	t.Parallel()
	t.Run("when we stop", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := w.event(1, "10.50")
		ctx, stop := context.WithCancel(t.Context())
		one.seam.once(openEnds, func() error { stop(); return nil })
		require.NoError(t, one.Bill(ctx, domain.Pass{}, []domain.Record{a.record}))
		unsent(w, a)
		one.settle()
		w.final(a, "captured")
	})
	t.Run("when intake is paused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		closed(w, one)
		a := w.event(1, "10.50")
		one.mustBill(a.record)
		unsent(w, a)
	})
	t.Run("when all slots are taken", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.policy.ChargeBudget, w.policy.MaxInFlight = 300*time.Millisecond, 1
		one := w.instance("one")
		a, b := w.event(1, "10.50"), w.event(2, "7.00")
		call := newGateway()
		w.provider.script(a.id, call.holding(captures))
		first := one.start(a.record)
		await(t, call.arrived)
		one.mustBill(b.record)
		unsent(w, b)
		close(call.release)
		require.NoError(t, await(t, first))
		one.settle()
		w.final(b, "captured")
	})
	t.Run("when the worker stops", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		one := w.instance("one")
		a := w.event(1, "10.50")
		w.provider.script(a.id, refuses)
		one.mustBill(a.record)
		w.clock.advance(time.Minute)
		reached, release := one.seam.pauseAt(sideLooked) // leased, and not sent
		worker := one.run()
		await(t, reached)
		worker.cancel()
		close(release)
		worker.stop()
		unsent(w, a)
	})
}

// Refused after an attempt that may have been carried out, the event stays in doubt.
func TestRefusalOfUsKeepsWhatMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := mayBeCharged(w, one, 1)
	w.provider.script(a.id, forbids)
	w.clock.advance(time.Minute)
	worker := one.run()
	require.Eventually(t, func() bool { shut, _, _ := one.gate.Closed(); return shut }, patience, 5*time.Millisecond)
	worker.stop()
	in := w.intent(a)
	require.Equal(t, "unknown", in.State)
	require.Equal(t, 1, in.Attempts)
	require.Equal(t, w.clock.Now(), in.DueAt.UTC())
	require.Empty(t, w.letters())
}

// A redirect is not followed; what its server did with the request is unknown.
func TestRedirectPausesAndLeavesTheEventInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, func(context.Context, *ledger, domain.ChargeRequest) domain.Answer {
		return domain.Answer{Kind: domain.Misconfigured, Status: 302, Posts: 1, MaybeSent: true}
	})
	one.mustBill(a.record)
	shut, _, _ := one.gate.Closed()
	require.True(t, shut)
	require.Equal(t, "unknown", w.intent(a).State)
}

// While paused one due intent a second goes out, and the first other answer
// resumes: whatever it says about its own charge.
func TestPausedWorkerProbesOnceASecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer step
		ends   string
	}{"captured": {captures, "captured"}, "declined": {declines, "declined"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := w.instance("one")
			first := closed(w, one)
			w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 hour'") // the one to be probed with
			a := w.event(1, "10.50")
			one.mustBill(a.record)
			w.provider.script(first.id, forbids, tt.answer)

			worker := one.run()
			defer worker.stop()
			await(t, w.clock.afterReads(4))
			require.Equal(t, 1, w.provider.forbiddens(), "the second has not passed")
			w.clock.advance(time.Second)
			require.Eventually(t, func() bool { return w.provider.forbiddens() == 2 }, patience, 5*time.Millisecond)
			await(t, w.clock.afterReads(8))
			require.Equal(t, 2, w.provider.forbiddens())
			require.Zero(t, w.provider.postsOf(a.id), "one probe a second")
			w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 hour' WHERE event_id = $1", first.id)

			w.clock.advance(time.Second)
			one.idle()
			w.final(first, tt.ends)
			w.final(a, "captured")
			shut, _, _ := one.gate.Closed()
			require.False(t, shut)
			require.Empty(t, w.letters())
			w.balanced()
		})
	}
}

// Where nothing is due, the next record is the probe: alone in its batch.
func TestNextRecordIsTheProbeWhereNothingIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	first := closed(w, one)
	two.settle() // another instance, whose credentials are right
	w.final(first, "captured")

	admitted := make(chan domain.Pass, 1)
	go func() {
		pass, err := one.Admit(context.WithoutCancel(t.Context()))
		if err == nil {
			admitted <- pass
		}
	}()
	worker := one.run()
	defer worker.stop()
	await(t, w.clock.afterReads(4))
	require.Empty(t, admitted)
	w.clock.advance(time.Second)
	pass := await(t, admitted)
	require.Equal(t, 1, pass.Limit(256))

	a := w.event(1, "10.50")
	require.NoError(t, one.Bill(t.Context(), pass, []domain.Record{a.record}))
	w.final(a, "captured")
	shut, _, _ := one.gate.Closed()
	require.False(t, shut)
	pass, err := one.Admit(t.Context())
	require.NoError(t, err)
	require.Equal(t, 256, pass.Limit(256))
	w.balanced()
}
