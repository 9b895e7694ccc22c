package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
)

// verdict returns a check that always finds the same.
func verdict(name string, status admin.Status, reason string) admin.Check {
	return admin.Check{Name: name, Run: func(context.Context) admin.Verdict {
		return admin.Verdict{Status: status, Reason: reason}
	}}
}

// withChecks sets up a server in a bubble's time, and ends its checks with the test.
func withChecks(t *testing.T, checks ...admin.Check) *bundle {
	t.Helper()
	b := setup(t, func(b *bundle) { b.deps.Checks, b.deps.Clock = checks, domain.SystemClock{} })
	t.Cleanup(func() { require.NoError(t, b.server.Shutdown(context.WithoutCancel(t.Context()))) })
	return b
}

// components asks an open route and returns its status code and its components by name.
func (b *bundle) components(t *testing.T, path string) (code int, status any, byName map[string]map[string]any) {
	t.Helper()
	got := b.ask(t, http.MethodGet, path, "")
	body := as[map[string]any](t, decode(t, got))
	byName = map[string]map[string]any{}
	for _, c := range as[[]any](t, body["components"]) {
		component := as[map[string]any](t, c)
		byName[as[string](t, component["name"])] = component
	}
	return got.Code, body["status"], byName
}

func TestReadinessIsLostWithAFailureOnly(t *testing.T) {
	t.Parallel()
	kafka, database := verdict("kafka", admin.StatusOK, ""), verdict("database", admin.StatusOK, "")
	for name, test := range map[string]struct {
		checks []admin.Check
		code   int
		status string
		detail string
	}{
		"no checks":        {nil, http.StatusOK, "ok", ""},
		"all is well":      {[]admin.Check{kafka, database}, http.StatusOK, "ok", ""},
		"a warning":        {[]admin.Check{kafka, verdict("retention", admin.StatusWarn, "short")}, http.StatusOK, "warn", ""},
		"a failure":        {[]admin.Check{kafka, verdict("provider", admin.StatusFail, "HTTP 401")}, http.StatusServiceUnavailable, "fail", "not ready: provider"},
		"failure, warning": {[]admin.Check{verdict("a", admin.StatusFail, "x"), verdict("b", admin.StatusWarn, "y")}, http.StatusServiceUnavailable, "fail", "not ready: a"},
		"two failures":     {[]admin.Check{verdict("a", admin.StatusFail, "x"), verdict("b", admin.StatusFail, "y")}, http.StatusServiceUnavailable, "fail", "not ready: a, b"},
		"an unknown word":  {[]admin.Check{verdict("a", "fine", "")}, http.StatusServiceUnavailable, "fail", "not ready: a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t, test.checks...)
			got := b.ask(t, http.MethodGet, "/readyz", "")
			require.Equal(t, test.code, got.Code)
			if test.code != http.StatusOK {
				require.Equal(t, test.detail, asProblem(t, got)["detail"])
			}
			code, status, components := b.components(t, "/healthz")
			require.Equal(t, http.StatusOK, code, "health is to be read, whatever it says")
			require.Equal(t, test.status, status)
			require.Len(t, components, len(test.checks))
			require.Equal(t, http.StatusOK, b.ask(t, http.MethodGet, "/livez", "").Code, "liveness depends on none of them")
		})
	}
}

func TestReadinessTellsReasonAndAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		began := time.Now()
		b := withChecks(t,
			admin.Check{Name: "database", Run: func(context.Context) admin.Verdict {
				if failing.Load() {
					return admin.Verdict{Status: admin.StatusFail, Reason: "refused"}
				}
				return admin.Verdict{Status: admin.StatusOK}
			}},
			admin.Check{Name: "provider", Run: func(context.Context) admin.Verdict {
				return admin.Verdict{Status: admin.StatusWarn, Reason: strings.Repeat("é", 150), Since: began.Add(-time.Hour)}
			}},
		)
		_, _, components := b.components(t, "/readyz")
		require.Equal(t, "ok", components["database"]["status"])
		require.InDelta(t, 0, components["database"]["age_seconds"], 0)
		require.InDelta(t, 3600, components["provider"]["age_seconds"], 0, "a check may know better since when")
		require.Equal(t, strings.Repeat("é", 100), components["provider"]["reason"], "reasons are cut at 200 bytes")

		time.Sleep(10 * time.Second)
		_, _, components = b.components(t, "/readyz")
		require.InDelta(t, 10, components["database"]["age_seconds"], 0)

		failing.Store(true)
		time.Sleep(5 * time.Second)
		code, _, components := b.components(t, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "refused", components["database"]["reason"])
		require.Equal(t, began.Add(15*time.Second).UTC().Format(time.RFC3339), components["database"]["since"])

		time.Sleep(7 * time.Second)
		_, _, components = b.components(t, "/healthz")
		require.InDelta(t, 7, components["database"]["age_seconds"], 0)
	})
}

func TestNoReasonOfAComponentHidesAnother(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	warn := func(reason string) admin.Verdict { return admin.Verdict{Status: admin.StatusWarn, Reason: reason} }
	fail := admin.Verdict{Status: admin.StatusFail, Reason: "away"}
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		found  []admin.Verdict
		status admin.Status
		reason string
	}{
		"none":                      {nil, admin.StatusOK, ""},
		"all is well":               {[]admin.Verdict{{Status: admin.StatusOK}, {Status: admin.StatusOK}}, admin.StatusOK, ""},
		"one":                       {[]admin.Verdict{{Status: admin.StatusOK}, warn("late")}, admin.StatusWarn, "late"},
		"two":                       {[]admin.Verdict{warn("late"), warn("short")}, admin.StatusWarn, "late; short"},
		"what is worst comes first": {[]admin.Verdict{warn("late"), fail}, admin.StatusFail, "away; late"},
		"one with more":             {[]admin.Verdict{{Status: admin.StatusWarn, Reason: "late", More: []string{"later"}}, warn("short")}, admin.StatusWarn, "late; later; short"},
		"each is cut by itself":     {[]admin.Verdict{warn(long), warn("short")}, admin.StatusWarn, long[:200] + "; short"},
		"five at most":              {[]admin.Verdict{warn("1"), warn("2"), warn("3"), warn("4"), warn("5"), warn("6")}, admin.StatusWarn, "1; 2; 3; 4; 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := withChecks(t, admin.Check{Name: "relay", Run: func(context.Context) admin.Verdict { return admin.Worst(test.found...) }})
			_, _, components := b.components(t, "/healthz")
			require.Equal(t, string(test.status), components["relay"]["status"])
			require.Equal(t, test.reason, components["relay"]["reason"])
		})
	}
	dated := admin.Worst(admin.Verdict{Status: admin.StatusWarn, Since: noon.Add(-time.Hour)}, admin.Verdict{Status: admin.StatusFail}, admin.Verdict{Status: admin.StatusFail, Since: noon})
	require.Equal(t, noon, dated.Since, "since when it is as bad as that")
}

func TestPollingCannotHammer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		b := withChecks(t, admin.Check{Name: "database", Run: func(context.Context) admin.Verdict {
			runs.Add(1)
			time.Sleep(100 * time.Millisecond)
			return admin.Verdict{Status: admin.StatusOK}
		}})
		poll := func() {
			var polls sync.WaitGroup
			for i := range 20 {
				path := []string{"/readyz", "/healthz"}[i%2]
				polls.Go(func() {
					got := httptest.NewRecorder()
					b.server.Handler().ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, http.NoBody))
					if got.Code != http.StatusOK {
						runs.Add(1000)
					}
				})
			}
			polls.Wait()
		}
		poll()
		require.EqualValues(t, 1, runs.Load(), "all who ask at once get one answer")
		time.Sleep(999 * time.Millisecond)
		poll()
		require.EqualValues(t, 1, runs.Load(), "and those within a second the same one")
		time.Sleep(time.Millisecond)
		poll()
		require.EqualValues(t, 2, runs.Load())
	})
}

func TestACheckThatHangsFailsAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		release := make(chan struct{})
		b := withChecks(t, verdict("kafka", admin.StatusOK, ""),
			admin.Check{Name: "database", Run: func(context.Context) admin.Verdict {
				runs.Add(1)
				<-release // whatever its context says
				return admin.Verdict{Status: admin.StatusOK}
			}})
		began := time.Now()
		code, _, components := b.components(t, "/readyz")
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "no answer within 2s", components["database"]["reason"])
		require.Equal(t, "ok", components["kafka"]["status"])

		time.Sleep(30 * time.Second)
		began = time.Now()
		_, _, components = b.components(t, "/readyz")
		require.Zero(t, time.Since(began), "its time is up already")
		require.EqualValues(t, 1, runs.Load(), "a second one is not started while it runs")
		require.InDelta(t, 30, components["database"]["age_seconds"], 0)

		close(release)
		synctest.Wait()
		code, _, components = b.components(t, "/readyz")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, "ok", components["database"]["status"])
	})
}

func TestACheckGetsADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := withChecks(t, admin.Check{Name: "database", Run: func(ctx context.Context) admin.Verdict {
			<-ctx.Done()
			return admin.Verdict{Status: admin.StatusFail, Reason: ctx.Err().Error()}
		}})
		began := time.Now()
		code, _, _ := b.components(t, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestAProbeThatGivesUpSaysNothingAboutTheComponent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := withChecks(t, admin.Check{Name: "database", Run: func(context.Context) admin.Verdict {
			time.Sleep(500 * time.Millisecond)
			return admin.Verdict{Status: admin.StatusOK}
		}})
		b.components(t, "/readyz")
		since := time.Now()
		time.Sleep(5 * time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		b.send(t, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		code, _, components := b.components(t, "/readyz")
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, since.UTC().Format(time.RFC3339Nano), components["database"]["since"], "it was well all the time")
	})
}

func TestACheckThatPanicsFails(t *testing.T) {
	t.Parallel()
	b := withChecks(t, admin.Check{Name: "worker", Run: func(context.Context) admin.Verdict { panic("secret") }})
	code, _, components := b.components(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "the check panicked", components["worker"]["reason"])
}

func TestShutdownEndsTheChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		b := withChecks(t, admin.Check{Name: "database", Run: func(ctx context.Context) admin.Verdict {
			close(started)
			<-ctx.Done()
			return admin.Verdict{Status: admin.StatusFail, Reason: "cancelled"}
		}})
		asked := make(chan int, 1)
		go func() {
			got := httptest.NewRecorder()
			b.server.Handler().ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
			asked <- got.Code
		}()
		<-started
		began := time.Now()
		require.NoError(t, b.server.Shutdown(t.Context()))
		require.Equal(t, http.StatusServiceUnavailable, <-asked)
		time.Sleep(time.Second) // past the reuse: a new check would close started again
		code, _, components := b.components(t, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "shutting down", components["database"]["reason"])
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestShutdownWaitsForAHangingCheckNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := withChecks(t, admin.Check{Name: "database", Run: func(context.Context) admin.Verdict {
			<-release
			return admin.Verdict{Status: admin.StatusOK}
		}})
		b.components(t, "/readyz")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := b.server.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "wait for health checks")
		require.Equal(t, time.Second, time.Since(began))
		close(release)
	})
}

func TestLivenessIsTheProcessesOwn(t *testing.T) {
	t.Parallel()
	var fault error
	b := setup(t, func(b *bundle) { b.deps.Alive = func() error { return fault } })
	require.JSONEq(t, `{"status":"ok"}`, b.ask(t, http.MethodGet, "/livez", "").Body.String())
	fault = errors.New("the poll loop stands still")
	got := b.ask(t, http.MethodGet, "/livez", "")
	require.Equal(t, http.StatusServiceUnavailable, got.Code)
	require.Equal(t, "the poll loop stands still", asProblem(t, got)["detail"])
}
