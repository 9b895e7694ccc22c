package admin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/billing/internal/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve listens and serves until the test ends; the function ends it earlier and
// returns what Serve returned.
func (b *bundle) serve(t *testing.T) (url string, end func() error) {
	t.Helper()
	require.NoError(t, b.server.Listen(t.Context()))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(ctx) }()
	end = func() error {
		cancel()
		err := <-served
		served <- err
		return err
	}
	t.Cleanup(func() { _ = end() })
	return "http://" + b.server.Addr(), end
}

func fetch(ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, got.Body)
	return got.StatusCode, errors.Join(err, got.Body.Close())
}

func TestServingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url, end := b.serve(t)
	code, err := fetch(t.Context(), url+"/livez")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, end())
	_, err = fetch(t.Context(), url+"/livez")
	require.Error(t, err)
}

func TestServingEndsWithShutdown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	url, end := b.serve(t)
	_, err := fetch(t.Context(), url+"/livez") // it serves
	require.NoError(t, err)
	require.NoError(t, b.server.Shutdown(t.Context()))
	require.NoError(t, end())
}

func TestARequestInFlightIsFinished(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	b := setup(t, func(b *bundle) {
		b.deps.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			_, _ = io.WriteString(w, "done")
		})
	})
	url, end := b.serve(t)
	type answer struct {
		code int
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		code, err := fetch(t.Context(), url+"/metrics")
		answers <- answer{code, err}
	}()
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	require.Eventually(t, func() bool { // it listens no more, so that the shutdown has begun
		_, err := fetch(t.Context(), url+"/livez")
		return err != nil
	}, 5*time.Second, time.Millisecond)
	close(release)
	require.Equal(t, answer{code: http.StatusOK}, <-answers)
	require.NoError(t, <-ended)
}

func TestARequestThatDoesNotEndIsCutOff(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	b := setup(t, func(b *bundle) {
		b.deps.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-release
		})
	})
	url, _ := b.serve(t)
	cut := make(chan error, 1)
	go func() {
		_, err := fetch(t.Context(), url+"/metrics")
		cut <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.server.Shutdown(ctx), context.DeadlineExceeded)
	require.Error(t, <-cut)
	close(release)
}

func TestAServerThatNeverServedLetsGoOfItsPort(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.server.Listen(t.Context()))
	addr := b.server.Addr()
	require.NoError(t, b.server.Shutdown(t.Context()))
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestAPortInUseIsKnownEarly(t *testing.T) {
	t.Parallel()
	first := setup(t)
	require.Equal(t, "127.0.0.1:0", first.server.Addr())
	require.NoError(t, first.server.Listen(t.Context()))
	defer func() { require.NoError(t, first.server.Shutdown(t.Context())) }()
	second := setup(t, func(b *bundle) { b.cfg.Addr = first.server.Addr() })
	require.ErrorContains(t, second.server.Listen(t.Context()), "address already in use")
	require.ErrorContains(t, second.server.Serve(t.Context()), "Listen comes before Serve")
}

func TestHeadersHaveABound(t *testing.T) {
	t.Parallel()
	url, _ := setup(t).serve(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/livez", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("X-Long", strings.Repeat("x", 32<<10))
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, got.StatusCode)
}

func TestWhoIsLetInIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg            admin.Config
		level, message string
	}{
		"insecure is loud":        {admin.Config{Insecure: true, Token: operatorToken}, "WARN", "OPEN TO EVERYONE"},
		"no tokens are mentioned": {admin.Config{}, "WARN", "probes and metrics only"},
		"a token is as it should": {admin.Config{ReadToken: readToken}, "INFO", "listens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(b *bundle) {
				b.cfg = test.cfg
				b.cfg.Addr = "127.0.0.1:0"
			})
			require.NoError(t, b.server.Listen(t.Context()))
			defer func() { require.NoError(t, b.server.Shutdown(t.Context())) }()
			lines := b.log.lines(t, test.message)
			require.Len(t, lines, 1)
			require.Equal(t, test.level, lines[0]["level"])
			require.Equal(t, b.server.Addr(), lines[0]["addr"])
			require.NotContains(t, b.log.String(), operatorToken)
		})
	}
}

func TestHealthIsAskedOverLoopback(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		checks []admin.Check
		want   string
	}{
		"ready":     {nil, ""},
		"a warning": {[]admin.Check{verdict("kafka", admin.StatusWarn, "slow")}, ""},
		"not ready": {
			[]admin.Check{
				verdict("kafka", admin.StatusOK, ""), verdict("database", admin.StatusFail, "refused"),
				verdict("provider", admin.StatusFail, "HTTP 401"),
			}, "not ready: database: refused; provider: HTTP 401",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(b *bundle) { b.deps.Checks = test.checks })
			b.serve(t)
			_, port, err := net.SplitHostPort(b.server.Addr())
			require.NoError(t, err)
			for _, addr := range []string{":" + port, "0.0.0.0:" + port, "127.0.0.1:" + port, "localhost:" + port} {
				err := admin.CheckHealth(t.Context(), addr)
				if test.want == "" {
					require.NoError(t, err, addr)
				} else {
					require.EqualError(t, err, test.want, addr)
				}
			}
		})
	}
}

func TestHealthOfWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	bodies := []string{"<html>", "{}", ""}
	var asked atomic.Int32
	server := &http.Server{
		ReadHeaderTimeout: time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, bodies[min(int(asked.Add(1)), len(bodies))-1], http.StatusBadGateway)
		}),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	for _, body := range bodies {
		require.EqualError(t, admin.CheckHealth(t.Context(), listener.Addr().String()), "not ready: 502 Bad Gateway", body)
	}
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	require.ErrorContains(t, admin.CheckHealth(t.Context(), listener.Addr().String()), "connection refused")
}

func TestTheAddressToAsk(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "[::1]:8080",
		"10.0.0.5:8080": "10.0.0.5:8080", "admin.internal:9": "admin.internal:9",
	} {
		got, err := admin.Loopback(addr)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, addr := range []string{"", "8080", ":0", ":", "a:b:c"} {
		_, err := admin.Loopback(addr)
		require.ErrorContains(t, err, "ADMIN_ADDR", addr)
		require.Error(t, admin.CheckHealth(t.Context(), addr))
	}
}
