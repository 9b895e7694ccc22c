package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/process"
)

// patience bounds every wait.
const patience = 30 * time.Second

func TestTheMeterCountsChargesAndNothingElse(t *testing.T) {
	t.Parallel()
	inside, release := make(chan struct{}, 3), make(chan struct{})
	d := &door{next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			inside <- struct{}{}
			<-release
		}
	})}
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
		return w
	}
	began := time.Now().UnixNano()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { ask(http.MethodPost, "/v1/charges") })
	}
	for range 3 {
		<-inside
	}
	ask(http.MethodGet, "/v1/charges")
	ask(http.MethodGet, "/_ledger")
	now := d.read()
	require.Equal(t, int64(3), now.Posts)
	require.Zero(t, now.Answered)
	require.Equal(t, int64(3), now.Most)
	require.GreaterOrEqual(t, now.First, began)
	close(release)
	all.Wait()

	ask(http.MethodPost, "/v1/charges")
	<-inside
	after := d.read()
	require.Equal(t, int64(4), after.Posts)
	require.Equal(t, int64(4), after.Answered)
	require.Equal(t, int64(3), after.Most, "the fourth came alone")
	require.Equal(t, now.First, after.First)
	require.Greater(t, after.Last, after.First)
	require.Contains(t, ask(http.MethodGet, "/_meter").Body.String(), `"posts":4`)

	require.Equal(t, http.StatusNoContent, ask(http.MethodDelete, "/_meter").Code)
	require.Equal(t, Meter{}, d.read())
}

func TestTheMeanIsTheTimeOfAllOverTheTimeThatPassed(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2.5, Meter{First: 100, Last: 300, Busy: 500}.Mean(), 1e-9)
	require.Zero(t, Meter{}.Mean())
}

// startProvider serves a provider with a meter until the test ends.
func startProvider(t *testing.T) provider {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	urls, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- ServeProvider(ctx, func(url string) { urls <- url }) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	select {
	case url := <-urls:
		return provider{url: url}
	case <-time.After(patience):
		require.FailNow(t, "no address")
		return provider{}
	}
}

func TestTheCeilingChargesEachOrderOnceAndNoWiderThanTold(t *testing.T) {
	t.Parallel()
	p := startProvider(t)
	require.NoError(t, p.prepare(t.Context(), "latency=2ms"))
	c, err := MeasureCeiling(t.Context(), CeilingOptions{URL: p.url, Requests: 400, Width: 4, Seed: 1})
	require.NoError(t, err)
	require.Equal(t, 400, c.Requests)
	require.LessOrEqual(t, c.Rate, 4/0.002, "four at a time, 2 ms each")
	require.InDelta(t, 396/c.Seconds, c.Rate, 1e-6, "without the four that made the connections")
	meter, err := p.meter(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(400), meter.Posts)
	require.Equal(t, int64(4), meter.Most)
	ledger, err := p.ledger(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(400), ledger.CapturedKeys)

	require.NoError(t, p.prepare(t.Context(), "402=1:no"))
	meter, err = p.meter(t.Context())
	require.NoError(t, err)
	require.Zero(t, meter.Posts, "prepared anew")
	_, err = MeasureCeiling(t.Context(), CeilingOptions{URL: p.url, Requests: 20, Width: 2, Seed: 1})
	require.ErrorContains(t, err, "not captured")

	_, err = MeasureCeiling(t.Context(), CeilingOptions{URL: p.url, Requests: 3, Width: 2, Seed: 1})
	require.ErrorContains(t, err, "at least two for each")

	require.ErrorContains(t, p.prepare(t.Context(), "latency=soon"), "400")
}

func TestAChildIsThereOnceItHasToldItsAddress(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c, err := startChild(t.Context(), process.Spec{
		Path: "/bin/sh", Args: []string{"-c", "echo warming up; printf 'http://127'; sleep 0.05; echo .0.0.1:1; exec sleep 600"}, Log: &log,
	}, "http://")
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:1", c.address)
	require.NoError(t, c.end(t.Context()))
	<-c.Done()
	require.Contains(t, log.String(), "warming up")

	_, err = startChild(t.Context(), process.Spec{Path: "/bin/sh", Args: []string{"-c", "echo no room; exit 3"}}, "http://")
	require.ErrorContains(t, err, "no room")
}

func TestAwait(t *testing.T) {
	t.Parallel()
	n := 0
	require.NoError(t, await(t.Context(), patience, time.Millisecond, "three", func() (bool, error) { n++; return n == 3, nil }))
	require.Equal(t, 3, n)
	require.EqualError(t, await(t.Context(), time.Millisecond, time.Millisecond, "never", func() (bool, error) { return false, nil }), "waited 1ms in vain: never")
	require.ErrorIs(t, await(t.Context(), patience, time.Millisecond, "broken", func() (bool, error) { return false, errNoProc }), errNoProc)
}
