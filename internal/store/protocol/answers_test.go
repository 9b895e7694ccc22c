package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// losses are the ways in which a main transaction ends without its process
// knowing that it stands.
func losses() map[string]func(*world, *instance) {
	return map[string]func(*world, *instance){
		"rolled back": func(_ *world, i *instance) {
			i.seam.once(mainCommits, func() error { return errLost })
		},
		"session cut before it wrote": func(w *world, i *instance) {
			i.seam.once(mainWrites, func() error { w.terminateMain(); return nil })
		},
		"session cut before its commit": func(w *world, i *instance) {
			i.seam.once(mainCommits, func() error { w.terminateMain(); return nil })
		},
		"committed, and the reply lost": func(_ *world, i *instance) {
			i.seam.once(mainCommitted, func() error { return errLost })
		},
	}
}

// The provider ignores keys here: a second POST would be a second charge.
func TestAnswersOutliveTheTransactionThatWasToRecordThem(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		answer step
		check  func(*world, event)
	}{
		"captured": {captures, func(w *world, e event) { w.final(e, "captured") }},
		"declined": {declines, func(w *world, e event) { w.final(e, "declined") }},
		"rejected": {rejects, func(w *world, e event) { require.Equal(w.t, "held", w.intent(e).State) }},
		"conflict": {conflicts, func(w *world, e event) { require.Equal(w.t, "parked", w.intent(e).State) }},
	}
	for how, lose := range losses() {
		for what, end := range ends {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.provider.ignoresKeys = true
				one, two := w.instance("one"), w.instance("two")
				a, b := w.event(1, "10.50"), w.event(2, "7.00")
				w.provider.script(a.id, end.answer)
				lose(w, one)
				require.Error(t, one.bill(a.record, b.record))

				two.mustBill(a.record, b.record)
				end.check(w, a)
				w.final(b, "captured")
				require.Equal(t, 1, w.provider.postsOf(a.id))
				require.Equal(t, 1, w.provider.postsOf(b.id))
				n := w.counters()
				require.EqualValues(t, 2, n.Processed)
				require.Equal(t, n.Received, n.Processed+n.Redelivered)
				w.balanced()
			})
		}
	}
}

// A commit whose reply is lost has counted; the rerun counts what it sees.
func TestRerunOfACommittedBatchSeesRedeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	one.seam.once(mainCommitted, func() error { return errLost })
	require.ErrorIs(t, one.bill(a.record, b.record), errLost)
	one.mustBill(a.record, b.record)
	n := w.counters()
	require.EqualValues(t, 4, n.Received)
	require.EqualValues(t, 2, n.Processed)
	require.EqualValues(t, 2, n.Redelivered)
	require.EqualValues(t, 2, n.Captured)
	w.balanced()
}

// The database that lost the transaction may need a moment before it takes the
// answer: a restart, or the lost session's locks.
func TestAnswersArePutDownOnceTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one")
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	one.seam.once(mainCommits, func() error { return errLost })
	for range 5 {
		one.seam.once(sideBegins, func() error { return errLost })
	}
	require.ErrorIs(t, one.bill(a.record, b.record), errLost)
	require.Equal(t, "answered", w.intent(a).State)
	require.Equal(t, "answered", w.intent(b).State)

	one.mustBill(a.record, b.record)
	w.final(a, "captured")
	w.final(b, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	require.Equal(t, 1, w.provider.postsOf(b.id))
	w.balanced()
}

// A failover takes longer than a commit. The answers have as long as the leases:
// before those end, nobody else would send.
func TestAnswersOutliveAnOutageThatIsLongerThanACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one", func(p *domain.Policy) { p.CommitMargin = 50 * time.Millisecond })
	a, b := w.event(1, "10.50"), w.event(2, "7.00")
	one.seam.once(mainCommits, func() error { return errLost })
	for range 12 {
		one.seam.once(sideBegins, func() error { return errLost })
	}
	require.ErrorIs(t, one.bill(a.record, b.record), errLost)
	require.Equal(t, "answered", w.intent(a).State)
	require.Equal(t, "answered", w.intent(b).State)

	one.mustBill(a.record, b.record)
	require.Equal(t, 1, w.provider.postsOf(a.id))
	require.Equal(t, 1, w.provider.postsOf(b.id))
	w.balanced()
}

// A process that is asked to give up does not wait for the database so long.
func TestStoppingEndsTheWaitForTheDatabaseAfterACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one", func(p *domain.Policy) { p.CommitMargin = 50 * time.Millisecond })
	one.seam.once(mainCommits, one.seam.kill)
	began := time.Now()
	require.ErrorIs(t, one.bill(w.event(1, "10.50").record), errLost)
	require.Less(t, time.Since(began), w.policy.Lease/2)
}

// The worker's answer has a lease to be recorded in.
func TestWorkerRecordsItsAnswerOnceTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.ignoresKeys = true
	one := w.instance("one")
	a := w.event(1, "10.50")
	w.provider.script(a.id, refuses)
	one.mustBill(a.record)
	w.clock.advance(w.policy.Lease)
	one.seam.once(sideLooked, func() error { return nil })     // it looks again
	one.seam.once(sideLooked, func() error { return errLost }) // and loses the record of the answer
	one.settle()
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

// What was withheld when the transaction is lost is taken back, so that its lease
// holds nobody up.
func TestLostTransactionTakesUnsentIntentsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.instance("one")
	a := w.event(1, "10.50")
	one.seam.once(mainLooked, func() error { return nil })
	one.seam.once(mainLooked, func() error { return errLost }) // the look after the intent stands
	require.ErrorIs(t, one.bill(a.record), errLost)
	require.Empty(t, w.intents(a))

	one.mustBill(a.record)
	w.final(a, "captured")
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}
