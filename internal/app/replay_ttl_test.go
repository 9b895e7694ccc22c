package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// The orders whose answers are lost: what the provider made of them is in their names.
const (
	capturedOrder, refusedOrder, unheardOrder = 1, 2, 3
)

// lossy stands before the provider: while it is bad, no POST is answered, and those of the order that
// is unheard do not even arrive.
type lossy struct {
	provider *paymenttest.Provider
	unheard  string // its key
	bad      atomic.Bool
}

func (l *lossy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !l.bad.Load() {
		l.provider.ServeHTTP(rw, r)
		return
	}
	if r.Header.Get("Idempotency-Key") != l.unheard {
		l.provider.ServeHTTP(httptest.NewRecorder(), r)
	}
	panic(http.ErrAbortHandler) // the connection ends without an answer
}

// lostAnswers is a world with a letter for each of the three orders: tried until the horizon ended,
// without an answer.
func lostAnswers(t *testing.T) (*world, *lossy, map[int64]order) {
	t.Helper()
	w := setup(t, 1, mustFaults(t, fmt.Sprintf("402=1:insufficient_funds@order:%d", refusedOrder)))
	events := map[int64]order{}
	for n := int64(capturedOrder); n <= unheardOrder; n++ {
		events[n] = newOrder(n)
		w.produce(w.record(0, []byte(events[n].json())))
	}
	l := &lossy{provider: w.provider, unheard: events[unheardOrder].id.String()}
	l.bad.Store(true)
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	w.payURL = server.URL
	s := w.start(map[string]string{"RETRY_HORIZON": "1ms"})
	w.eventually("parked", func() bool {
		return w.count(`SELECT count(*) FROM dead_letter WHERE reason = 'retries_exhausted' AND state = 'open'`) == 3
	})
	s.Stop()
	require.EqualValues(t, 3, w.count(`SELECT count(*) FROM charge_intent WHERE state = 'parked' AND claimed AND maybe_sent`))
	require.EqualValues(t, 1, w.provider.Ledger().Captures)
	l.bad.Store(false)
	return w, l, events
}

// posts is how many requests of the order the provider has had.
func (w *world) posts(o order) int {
	w.t.Helper()
	c, _ := w.provider.Charge(o.id.String())
	return c.Posts
}

// statuses are how the charges of the orders ended.
func (w *world) statuses() (all []string) {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT status FROM charge ORDER BY order_id`)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var status string
		require.NoError(w.t, rows.Scan(&status))
		all = append(all, status)
	}
	require.NoError(w.t, rows.Err())
	return all
}

// The answers were lost, and the keys are older by now than the provider remembers them for sure: replayed,
// each is looked up first, and sent only where the provider knows of nothing. It makes no difference whether
// it has forgotten the keys indeed, and would charge again.
func TestReplayAfterTheKeysLifeLooksUpAndCapturesOnce(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]bool{"the provider has forgotten the keys": true, "the provider still knows the keys": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, events := lostAnswers(t)
			faults := w.provider.Faults()
			faults.IgnoreKeys = forgotten
			require.NoError(t, w.provider.SetFaults(faults))
			late := map[string]string{"PAYMENT_LOOKUP": "true", "PAYMENT_KEY_TTL": "1ms", "RETRY_HORIZON": "1h"}
			environ := []string{"DATABASE_URL=" + w.url, "PAYMENT_URL=" + w.payURL}
			for k, v := range late {
				environ = append(environ, k+"="+v)
			}
			before := map[int64]int{}
			for n, o := range events {
				before[n] = w.posts(o)
			}

			code, out, errs := command(t, environ, "replay", "--all", "--dry-run", "--json")
			require.Zero(t, code, errs)
			views := map[uuid.UUID]string{}
			for line := range strings.Lines(out) {
				var said struct {
					EventID uuid.UUID `json:"event_id"`
					Forward string
					Before  struct{ Provider string }
				}
				require.NoError(t, json.Unmarshal([]byte(line), &said))
				require.Contains(t, said.Forward, "looked up at the provider first")
				views[said.EventID] = said.Before.Provider
			}
			require.Equal(t, map[uuid.UUID]string{
				events[capturedOrder].id: "captured", events[refusedOrder].id: "declined", events[unheardOrder].id: "knows nothing of it",
			}, views)
			code, out, errs = command(t, environ, "replay", "--all", "--why", "the provider is back")
			require.Zero(t, code, errs)
			require.Contains(t, out, "3 of 3 letters replayed")

			s := w.start(late)
			w.settled()
			require.Equal(t, []string{"captured", "declined", "captured"}, w.statuses())
			require.Equal(t, before[capturedOrder], w.posts(events[capturedOrder]), "not asked for again")
			require.Equal(t, before[refusedOrder], w.posts(events[refusedOrder]))
			require.Equal(t, 1, w.posts(events[unheardOrder]), "the provider knew of nothing")
			ledger := w.provider.Ledger()
			require.EqualValues(t, 2, ledger.Captures)
			require.Zero(t, ledger.DoubleCharges)
			require.EqualValues(t, 3, w.count(`SELECT count(*) FROM dead_letter WHERE state = 'resolved'`))
			require.EqualValues(t, 2, s.stats().Captured)
		})
	}
}

// Where it cannot be looked up, nothing is sent: the letters ask for somebody who looks, and what he saw
// is final, also when the offsets are reset.
func TestReplayAfterTheKeysLifeWithoutALookUpSendsNothing(t *testing.T) {
	t.Parallel()
	w, _, events := lostAnswers(t)
	require.NoError(t, w.provider.SetFaults(paymenttest.Faults{IgnoreKeys: true})) // it has forgotten them
	posts := w.provider.Ledger().Posts
	code, out, errs := w.replay("--all", "--why", "the provider is back")
	require.Zero(t, code, errs)
	require.Contains(t, out, "3 of 3 letters replayed")

	late := map[string]string{"RETRY_HORIZON": "1ms", "PAYMENT_KEY_TTL": "2ms"}
	s := w.start(late)
	w.eventually("parked again", func() bool {
		return w.count(`SELECT count(*) FROM dead_letter WHERE reason = 'needs_reconciliation' AND state = 'open'`) == 3
	})
	require.EqualValues(t, 3, s.stats().Parked)
	s.Stop()
	require.Equal(t, posts, w.provider.Ledger().Posts)

	charge, _ := w.provider.Charge(events[capturedOrder].id.String())
	for n, saw := range map[int64][]string{
		capturedOrder: {"--outcome", "charged", "--provider-charge-id", "ch_" + charge.Key[:8]},
		refusedOrder:  {"--outcome", "not_charged"},
		unheardOrder:  {"--outcome", "not_charged"},
	} {
		id := w.count(`SELECT id FROM dead_letter WHERE event_id = $1`, events[n].id)
		code, _, errs := w.replay(append([]string{"--id", strconv.FormatInt(id, 10), "--discard", "--why", "as the provider says"}, saw...)...)
		require.Zero(t, code, errs)
	}
	require.Equal(t, []string{"captured", "discarded", "discarded"}, w.statuses())
	w.rewind()
	again := w.start(late)
	w.settled()
	require.EqualValues(t, 3, again.stats().Duplicates.Redelivered)
	require.Equal(t, posts, w.provider.Ledger().Posts)
	require.EqualValues(t, 1, w.provider.Ledger().Captures)
}
