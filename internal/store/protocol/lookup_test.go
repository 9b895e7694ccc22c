package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// looking is an instance that can look charges up, and retries for a week.
func looking(w *world) *instance {
	return w.instance("one", func(p *domain.Policy) { p.Finder, p.RetryHorizon = w.provider, 7*24*time.Hour })
}

// doubtful returns an event whose answer was lost, long enough ago for its key to
// be forgotten.
func doubtful(w *world, one *instance, s step) event {
	w.t.Helper()
	e := w.event(1, "10.50")
	w.provider.script(e.id, losing(s))
	one.mustBill(e.record)
	require.Equal(w.t, "unknown", w.intent(e).State)
	w.clock.advance(24 * time.Hour)
	return e
}

func TestForgottenKeyIsLookedUpBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first step
		ends  string
		posts int
	}{
		"it was captured":  {captures, "captured", 1},
		"it was declined":  {declines, "declined", 1},
		"it never arrived": {times, "captured", 2}, // and is sent now, with the same key
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.ignoresKeys = true
			one := looking(w)
			a := doubtful(w, one, tt.first)
			w.provider.finds = func(f domain.Found) (domain.Found, error) {
				require.Equal(t, "calling", w.intent(a).State, "the look-up has the lease")
				require.Equal(t, 1, w.provider.postsOf(a.id), "and comes first")
				require.Eventually(t, func() bool { // the other takers come to rest
					var open int
					w.scan(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
						AND state LIKE 'idle in transaction%'`, nil, &open)
					return open == 0
				}, patience, time.Millisecond, "no transaction is open meanwhile")
				return f, nil
			}
			one.settle()
			w.final(a, tt.ends)
			require.Equal(t, tt.posts, w.provider.postsOf(a.id))
			require.Equal(t, 1, w.provider.lookups)
			require.LessOrEqual(t, w.provider.capturesOf(a.id), 1)
			var id, code string
			w.scan(`SELECT coalesce(provider_charge_id, ''), coalesce(decline_code, '') FROM charge WHERE event_id = $1`, []any{a.id}, &id, &code)
			require.NotEmpty(t, id+code, "what the provider calls it is kept")
			require.Empty(t, w.letters())
			w.balanced()
		})
	}
}

func TestKeyThatIsRememberedIsNotLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := looking(w)
	a := w.event(1, "10.50")
	w.provider.script(a.id, losing(captures))
	one.mustBill(a.record)
	w.clock.advance(time.Hour)
	one.settle()
	w.final(a, "captured")
	require.Zero(t, w.provider.lookups)
	require.Equal(t, 2, w.provider.postsOf(a.id))
}

// The provider has another charge under our key: only a human can tell.
func TestLookUpThatFindsAnotherChargeParks(t *testing.T) {
	t.Parallel()
	for name, differ := range map[string]func(*domain.Found){
		"of another order": func(f *domain.Found) { f.OrderID++ },
		"over another amount": func(f *domain.Found) {
			other, err := domain.NewMoney(f.Amount.Minor()+1, "EUR")
			require.NoError(t, err)
			f.Amount = other
		},
		"in another currency": func(f *domain.Found) {
			other, err := domain.NewMoney(f.Amount.Minor(), "USD")
			require.NoError(t, err)
			f.Amount = other
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one := looking(w)
			a := doubtful(w, one, captures)
			w.provider.finds = func(f domain.Found) (domain.Found, error) { differ(&f); return f, nil }
			one.settle()
			require.Equal(t, "parked", w.intent(a).State)
			w.letter(a.record, domain.ReasonNeedsReconciliation)
			require.Equal(t, 1, w.provider.postsOf(a.id))
			w.balanced()
		})
	}
}

// A look-up that fails says nothing: it is made again later, until the horizon.
func TestLookUpThatFailsIsMadeAgainUntilTheHorizon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := looking(w)
	a := doubtful(w, one, captures)
	attempts := w.intent(a).Attempts
	w.provider.finds = func(domain.Found) (domain.Found, error) { return domain.Found{}, errors.New("look-up: 503") }
	one.settle()
	in := w.intent(a)
	require.Equal(t, "unknown", in.State)
	require.True(t, in.DueAt.After(w.clock.Now()))
	require.Equal(t, attempts, in.Attempts, "nothing was sent")

	w.clock.advance(6 * 24 * time.Hour)
	one.settle()
	require.Equal(t, "parked", w.intent(a).State)
	w.letter(a.record, domain.ReasonRetriesExhausted)
	require.Equal(t, 1, w.provider.postsOf(a.id))
	w.balanced()
}

// While intake is paused nothing but probes goes out, look-ups included.
func TestLookUpIsHeldBackWhileIntakeIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := looking(w)
	a := doubtful(w, one, captures)
	reached, release := one.seam.pauseAt(sideLooked) // leased
	worker := one.run()
	defer worker.stop()
	await(t, reached)
	closed(w, one)
	close(release)
	require.Eventually(t, func() bool { return w.intent(a).State == "unknown" }, patience, 5*time.Millisecond)
	require.Zero(t, w.provider.lookups)
}
