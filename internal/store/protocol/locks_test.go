package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// slowly makes every row that is inserted take its time, so that two statements
// over the same keys always meet in the middle.
func (w *world) slowly(table string) {
	w.exec(`CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END'`)
	w.exec(fmt.Sprintf("CREATE TRIGGER slowly BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION slowly()", table))
}

// together runs the functions at once and returns their errors.
func together(fns ...func() error) []error {
	var all sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, len(fns))
	for n, fn := range fns {
		all.Go(func() {
			<-start
			errs[n] = fn()
		})
	}
	close(start)
	all.Wait()
	return errs
}

// patientSide waits for locks longer than PostgreSQL takes to find a deadlock:
// one that is there shows itself.
func patientSide(url string) store.Config {
	c := storetest.Config(url)
	c.SideLockTimeout, c.SideTimeout = 10*time.Second, 15*time.Second
	return c
}

// The events of the two batches rise while their orders fall.
func TestCrossedIntentsOfManyRowsDoNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := store.New(patientSide(w.url))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w.slowly("charge_intent")
	const rounds, orders = 12, 6
	for round := range rounds {
		ids := make([]uuid.UUID, 2*orders)
		for n := range ids {
			ids[n] = uuid.Must(uuid.NewV7())
		}
		var rising, falling []domain.Intent
		for n := range int64(orders) {
			order := int64(round)*orders + n + 1
			rising = append(rising, w.calling(ids[n], order))
			falling = append(falling, w.calling(ids[2*orders-1-n], order))
		}
		slices.Reverse(falling) // by event, as a batch has them
		var first, second map[uuid.UUID]bool
		for _, err := range together(
			func() (err error) { first, err = s.Open(context.WithoutCancel(t.Context()), rising); return err },
			func() (err error) { second, err = s.Open(context.WithoutCancel(t.Context()), falling); return err },
		) {
			require.NoError(t, err)
		}
		require.Len(t, first, orders-len(second), "each order has one intent")
	}
}

// calling is an intent as a batch commits it.
func (w *world) calling(id uuid.UUID, order int64) domain.Intent {
	e := w.eventOf(id, order, "10.50")
	now := w.clock.Now()
	return domain.Intent{
		EventID: e.id, OrderID: order, State: domain.Calling, Token: uuid.New(), LeaseUntil: now.Add(w.policy.Lease),
		DueAt: now.Add(w.policy.Lease), CreatedAt: now, FirstAttemptAt: now, Group: group, Record: e.record,
	}
}

func TestOverlappingClaimsInOppositeOrderDoNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	w.slowly("processed_event")
	for range 6 {
		var up, down []domain.Record
		for range 6 {
			e := w.event(w.next[0]+1, "10.50")
			up = append(up, e.record)
			down = append(down, w.republished(1, e.record))
		}
		slices.Reverse(down)
		for _, err := range together(func() error { return one.bill(up...) }, func() error { return two.bill(down...) }) {
			require.NoError(t, err)
		}
	}
	n := w.counters()
	require.EqualValues(t, 36, n.Captured)
	require.EqualValues(t, 36, n.Republished+n.Redelivered)
	w.balanced()
}

// Each batch finishes an event of an order that the other one wants to open. Had
// it written before its own last side statement, each would hold what the other
// waits for, one of the waits in another session, where PostgreSQL sees no circle.
func TestBatchesThatAdoptAndOpenCrosswiseDoNotHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instanceWith("one", patientSide(w.url)), w.instanceWith("two", patientSide(w.url))
	var left []event // answered, unclaimed
	for order := range int64(2) {
		e := w.event(order+1, "10.50")
		one.seam.once(mainCommits, func() error { return errLost })
		require.ErrorIs(t, one.bill(e.record), errLost)
		require.Equal(t, "answered", w.intent(e).State)
		left = append(left, e)
	}
	fresh := []event{w.event(1, "10.50"), w.event(2, "10.50"), w.event(3, "7.00"), w.event(4, "7.00")}
	var open sync.WaitGroup
	open.Add(2)
	for _, i := range []*instance{one, two} {
		i.seam.once(openBegins, func() error { open.Done(); open.Wait(); return nil })
	}
	before := len(one.seam.reached())
	began := time.Now()
	for _, err := range together(
		func() error { return one.bill(left[0].record, fresh[1].record, fresh[2].record) },
		func() error { return two.bill(left[1].record, fresh[0].record, fresh[3].record) },
	) {
		require.NoError(t, err)
	}
	require.Less(t, time.Since(began), 10*time.Second, "nobody waited for a lock timeout")
	require.Equal(t, []point{mainLooked, openBegins, openEnds, mainLooked, mainWrites, mainWrote, mainCommits, mainCommitted},
		one.seam.reached()[before:], "nothing is locked or written before the last statement aside")
	w.clock.advance(time.Minute)
	one.settle()
	for n := range left {
		w.final(left[n], "captured")
		w.final(fresh[n], "duplicate_order")
		w.final(fresh[n+2], "captured")
	}
	w.balanced()
}

// A batch that has finished an event and not committed holds the order's key.
// Whoever opens an event of the order waits a short time, and the others of its
// batch are not held up.
func TestOpeningBesideAnUncommittedFinishWaitsBriefly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b, c := w.event(1, "10.50"), w.event(1, "10.50"), w.event(2, "7.00")
	reached, release := one.seam.pauseAt(mainWrote)
	two.seam.once(mainLooked, func() error { // before A is known to anybody
		go func() { _ = one.bill(a.record) }()
		await(t, reached)
		return nil
	})
	two.mustBill(b.record, c.record)
	require.Equal(t, "waiting", w.intent(b).State)
	w.final(c, "captured")

	close(release)
	require.Eventually(t, func() bool { return w.status(a) == "captured" }, patience, 5*time.Millisecond)
	w.clock.advance(time.Minute)
	two.settle()
	w.final(b, "duplicate_order")
	require.Zero(t, w.provider.postsOf(b.id))
	w.balanced()
}

// The worker leases B while the uncommitted finish of A holds the order's key:
// SKIP LOCKED does not spare it that wait, the short lock timeout does.
func TestWorkerBesideAnUncommittedFinishPutsTheSiblingOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.instance("one"), w.instance("two")
	a, b, c := w.event(1, "10.50"), w.event(1, "10.50"), w.event(2, "7.00")
	w.provider.script(b.id, refuses)
	w.provider.script(c.id, refuses)
	two.mustBill(b.record)
	w.clock.advance(time.Millisecond)
	two.mustBill(c.record)
	w.exec("UPDATE charge_intent SET due_at = $1", w.clock.Now())
	w.exec("UPDATE charge_intent SET due_at = due_at - interval '1 second' WHERE event_id = $1", b.id)
	attempts := w.intent(b).Attempts

	reached, release := one.seam.pauseAt(mainWrote)
	done := make(chan error, 1)
	two.seam.once(takeLooked, func() error {
		go func() { done <- one.bill(a.record) }()
		await(t, reached)
		return nil
	})
	began := time.Now()
	two.settle()
	require.Less(t, time.Since(began), w.policy.CommitMargin, "the lock timeout ends the wait, nothing slower")
	in := w.intent(b)
	require.Equal(t, "waiting", in.State)
	require.True(t, in.DueAt.After(w.clock.Now()), "it lets the others pass")
	require.Equal(t, attempts, in.Attempts, "a lock wait is no attempt")
	w.final(c, "captured")

	close(release)
	require.NoError(t, await(t, done))
	w.clock.advance(time.Minute)
	two.settle()
	w.final(a, "captured")
	w.final(b, "duplicate_order")
	require.Zero(t, w.provider.postsOf(b.id))
	require.Empty(t, w.letters())
	w.balanced()
}

// A claim that waits too long for its twin fails without a trace, and is tried again.
func TestClaimThatTimesOutIsNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	brief := storetest.Config(w.url)
	brief.LockTimeout = 100 * time.Millisecond
	one, two := w.instance("one"), w.instanceWith("two", brief)
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	call := newGateway()
	w.provider.script(a.id, call.holding(captures))
	first := one.start(a.record)
	await(t, call.arrived)
	twin := w.republished(1, a.record)
	require.Error(t, two.bill(twin, b.record))
	require.Empty(t, w.intents(b))
	require.Empty(t, w.letters())

	close(call.release)
	require.NoError(t, await(t, first))
	two.mustBill(twin, b.record)
	w.final(a, "captured")
	w.final(b, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}
