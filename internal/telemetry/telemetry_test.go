package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/telemetry"
)

// journal keeps log lines, also those of other goroutines.
type journal struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes.Write(p)
}

func (j *journal) lines(t *testing.T) []map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []map[string]any
	for line := range strings.Lines(j.bytes.String()) {
		var parsed map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &parsed))
		lines = append(lines, parsed)
	}
	return lines
}

// line returns the one with that message: what OpenTelemetry complains of goes to the log that was set up
// last in the process, whoever's it is.
func (j *journal) line(t *testing.T, message string) map[string]any {
	t.Helper()
	lines := j.lines(t)
	at := slices.IndexFunc(lines, func(line map[string]any) bool { return line[slog.MessageKey] == message })
	require.GreaterOrEqual(t, at, 0, "no line %q in %v", message, lines)
	return lines[at]
}

// stillClock stands still until it is moved.
type stillClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *stillClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stillClock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

func config(env map[string]string) (telemetry.Config, *journal) {
	log := &journal{}
	return telemetry.Config{
		ServiceName: "billing", ServiceVersion: "1.2.3", LogOutput: log,
		Getenv: func(key string) string { return env[key] }, Clock: domain.SystemClock{},
	}, log
}

func setup(t *testing.T, cfg telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context()))) })
	return tel
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	tel.MetricsHandler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, recorder.Code)
	return recorder.Body.String()
}

func TestEveryBadSettingIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := telemetry.Setup(t.Context(), telemetry.Config{LogLevel: "loud", LogFormat: "xml"})
	require.ErrorContains(t, err, `LOG_LEVEL: "loud"`)
	require.ErrorContains(t, err, `LOG_FORMAT: "xml"`)
	require.ErrorContains(t, err, "needs a name")
	require.ErrorContains(t, err, "needs a log output")
}

func TestAnUnknownExporterIsAComplaint(t *testing.T) { // no t.Parallel: the exporter reads the process's environment
	t.Setenv("OTEL_TRACES_EXPORTER", "pigeon")
	cfg, _ := config(map[string]string{"OTEL_TRACES_EXPORTER": "pigeon"})
	_, err := telemetry.Setup(t.Context(), cfg)
	require.ErrorContains(t, err, `OTEL_TRACES_EXPORTER="pigeon"`)

	t.Setenv("OTEL_METRICS_EXPORTER", "pigeon")
	cfg, _ = config(map[string]string{"OTEL_METRICS_EXPORTER": "pigeon"})
	_, err = telemetry.Setup(t.Context(), cfg)
	require.ErrorContains(t, err, `OTEL_METRICS_EXPORTER="pigeon"`)
}

// collector counts the bodies that an OTLP collector would get, by path.
func collector(t *testing.T) (url string, bodies func(path string) int) {
	t.Helper()
	var mu sync.Mutex
	got := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && len(body) > 0 {
			got[r.URL.Path]++
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func(path string) int {
		mu.Lock()
		defer mu.Unlock()
		return got[path]
	}
}

func TestWhatIsExportedFollowsTheEnvironment(t *testing.T) { // no t.Parallel: the exporter reads the process's environment
	const traces, metrics = "/v1/traces", "/v1/metrics"
	for name, test := range map[string]struct {
		env             func(url string) map[string]string
		traces, metrics bool
	}{
		"an endpoint takes traces": {
			env:    func(url string) map[string]string { return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url} },
			traces: true,
		},
		"an endpoint for traces takes traces": {
			env: func(url string) map[string]string {
				return map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url + traces}
			},
			traces: true,
		},
		"an endpoint for metrics takes metrics": {
			env: func(url string) map[string]string {
				return map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": url + metrics}
			},
			metrics: true,
		},
		"none sends no traces in spite of an endpoint": {
			env: func(url string) map[string]string {
				return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none"}
			},
		},
		"a disabled SDK sends nothing": {
			env: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE",
				}
			},
		},
		"both by name": {
			env: func(url string) map[string]string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp",
				}
			},
			traces: true, metrics: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, bodies := collector(t)
			env := test.env(url)
			for key, value := range env {
				t.Setenv(key, value)
			}
			cfg, _ := config(env)
			tel, err := telemetry.Setup(t.Context(), cfg)
			require.NoError(t, err)
			_, span := tel.Tracers().Tracer("test").Start(t.Context(), "work")
			span.End()
			counter, err := tel.Meters().Meter("test").Int64Counter("work")
			require.NoError(t, err)
			counter.Add(t.Context(), 1)
			require.NoError(t, tel.Shutdown(t.Context()))
			require.Equal(t, test.traces, bodies(traces) > 0, "traces")
			require.Equal(t, test.metrics, bodies(metrics) > 0, "metrics")
		})
	}
}

func TestWithoutAnEndpointNobodyIsCalled(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:4318")
	calls := make(chan struct{}, 1)
	if err == nil { // else somebody else listens there, and would get the span if it were sent
		defer listener.Close()
		go func() {
			if conn, err := listener.Accept(); err == nil {
				conn.Close()
				calls <- struct{}{}
			}
		}()
	}
	cfg, _ := config(nil)
	tel, err := telemetry.Setup(t.Context(), cfg)
	require.NoError(t, err)
	_, span := tel.Tracers().Tracer("test").Start(t.Context(), "work")
	span.End()
	require.NoError(t, tel.Shutdown(t.Context()), "nothing is left to be sent")
	require.Empty(t, calls)
}

func TestAMissingCollectorHoldsNobodyUp(t *testing.T) { // no t.Parallel: the exporter reads the process's environment
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, never answers
	require.NoError(t, err)
	defer silent.Close()
	url := "http://" + silent.Addr().String()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	cfg, _ := config(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url})
	tel, err := telemetry.Setup(t.Context(), cfg)
	require.NoError(t, err)
	_, span := tel.Tracers().Tracer("test").Start(t.Context(), "work")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, tel.Shutdown(ctx), context.DeadlineExceeded)
}

func TestErrorsOfTelemetryAreLoggedOnceInAWhile(t *testing.T) {
	t.Parallel()
	log := &journal{}
	logger, err := telemetry.NewLogger(log, "info", "json")
	require.NoError(t, err)
	clock := &stillClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	handler := telemetry.NewErrorHandler(logger, clock)
	for range 5 {
		handler.Handle(errors.New("collector: connection refused"))
	}
	handler.Handle(nil)
	clock.move(10*time.Second - 1)
	handler.Handle(errors.New("collector: connection refused"))
	require.Len(t, log.lines(t), 1)
	clock.move(1)
	handler.Handle(errors.New("collector: connection refused"))
	lines := log.lines(t)
	require.Len(t, lines, 2)
	require.Equal(t, "WARN", lines[1]["level"])
	require.Equal(t, "collector: connection refused", lines[1]["error"])
	require.EqualValues(t, 5, lines[1]["errors_not_logged"])
}

//nolint:paralleltest // the handler is the process's: another set-up would take it away
func TestErrorsOfTelemetryGoToTheLog(t *testing.T) {
	cfg, log := config(nil)
	clock := &stillClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cfg.Clock = clock
	setup(t, cfg)
	// What an earlier test's exporter still has to say may come between.
	require.Eventually(t, func() bool {
		clock.move(10 * time.Second)
		otel.Handle(errors.New("unmistakable"))
		return slices.ContainsFunc(log.lines(t), func(line map[string]any) bool { return line["error"] == "unmistakable" })
	}, 5*time.Second, time.Millisecond)
}

func TestMetricsAreServedToPrometheus(t *testing.T) {
	t.Parallel()
	cfg, _ := config(nil)
	tel := setup(t, cfg)
	counter, err := tel.Meters().Meter("test").Int64Counter("billing.things")
	require.NoError(t, err)
	counter.Add(t.Context(), 3)
	page := scrape(t, tel)
	require.Contains(t, page, "billing_things_total 3")
	require.Contains(t, page, `service_name="billing",service_version="1.2.3"`)
	require.Contains(t, page, "go_goroutines ")
	require.Contains(t, page, "process_open_fds ")
}

func TestRegistriesAreNotShared(t *testing.T) {
	t.Parallel()
	cfg, _ := config(nil)
	counter, err := setup(t, cfg).Meters().Meter("test").Int64Counter("only.mine")
	require.NoError(t, err)
	counter.Add(t.Context(), 1)
	require.NotContains(t, scrape(t, setup(t, cfg)), "only_mine")
}

func TestATraceIsContinued(t *testing.T) {
	t.Parallel()
	cfg, log := config(nil)
	tel := setup(t, cfg)
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	from := propagation.MapCarrier{"traceparent": "00-" + traceID + "-b7ad6b7169203331-01", "baggage": "k=v"}
	ctx, span := tel.Tracers().Tracer("test").Start(tel.Propagator().Extract(t.Context(), from), "work")
	defer span.End()
	to := propagation.MapCarrier{}
	tel.Propagator().Inject(ctx, to)
	require.Equal(t, "00-"+traceID+"-"+span.SpanContext().SpanID().String()+"-01", to["traceparent"])
	require.Equal(t, "k=v", to["baggage"])

	tel.Logger().InfoContext(ctx, "at work")
	line := log.line(t, "at work")
	require.Equal(t, traceID, line["trace_id"])
	require.Equal(t, span.SpanContext().SpanID().String(), line["span_id"])
}

func TestAnUnsampledParentIsRespected(t *testing.T) {
	t.Parallel()
	cfg, _ := config(nil)
	tel := setup(t, cfg)
	from := propagation.MapCarrier{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
	_, span := tel.Tracers().Tracer("test").Start(tel.Propagator().Extract(t.Context(), from), "work")
	defer span.End()
	require.False(t, span.SpanContext().IsSampled())
}

func TestLinesOfOneLogger(t *testing.T) {
	t.Parallel()
	ids := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	traced := trace.ContextWithSpanContext(t.Context(), ids)
	const traceID, spanID = "01000000000000000000000000000000", "0200000000000000"
	for name, test := range map[string]struct {
		ctx  context.Context
		log  func(*slog.Logger) *slog.Logger
		want map[string]any
	}{
		"hold no ids without a span": {
			ctx: t.Context(), log: func(l *slog.Logger) *slog.Logger { return l.With("a", "1") },
			want: map[string]any{"a": "1", "k": "v"},
		},
		"hold the ids of the span": {
			ctx: traced, log: func(l *slog.Logger) *slog.Logger { return l },
			want: map[string]any{"k": "v", "trace_id": traceID, "span_id": spanID},
		},
		"keep their attributes": {
			ctx: traced, log: func(l *slog.Logger) *slog.Logger { return l.With("a", "1") },
			want: map[string]any{"a": "1", "k": "v", "trace_id": traceID, "span_id": spanID},
		},
		"hold the ids outside of groups": {
			ctx: traced,
			log: func(l *slog.Logger) *slog.Logger {
				return l.With("a", "1").WithGroup("g").With("b", "2").WithGroup("").WithGroup("h")
			},
			want: map[string]any{
				"a": "1", "trace_id": traceID, "span_id": spanID,
				"g": map[string]any{"b": "2", "h": map[string]any{"k": "v"}},
			},
		},
		"keep their groups without a span": {
			ctx: t.Context(), log: func(l *slog.Logger) *slog.Logger { return l.WithGroup("g").With("b", "2") },
			want: map[string]any{"g": map[string]any{"b": "2", "k": "v"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &journal{}
			log, err := telemetry.NewLogger(out, "", "")
			require.NoError(t, err)
			test.log(log).InfoContext(test.ctx, "message", "k", "v")
			line := out.lines(t)[0]
			require.Equal(t, "INFO", line["level"])
			require.Equal(t, "message", line["msg"])
			require.NotEmpty(t, line["time"])
			for _, key := range []string{"level", "msg", "time"} {
				delete(line, key)
			}
			require.Equal(t, test.want, line)
		})
	}
}

func TestTheLevelIsTheLeastThatIsLogged(t *testing.T) {
	t.Parallel()
	for level, lines := range map[string]int{"debug": 4, "info": 3, "": 3, "warn": 2, "error": 1} {
		out := &journal{}
		log, err := telemetry.NewLogger(out, level, "json")
		require.NoError(t, err)
		log.Debug("d")
		log.Info("i")
		log.Warn("w")
		log.Error("e")
		require.Len(t, out.lines(t), lines, level)
	}
}

func TestTextLinesAreForPeople(t *testing.T) {
	t.Parallel()
	out := &journal{}
	log, err := telemetry.NewLogger(out, "info", "text")
	require.NoError(t, err)
	log.Info("hello", "k", "v")
	require.Contains(t, out.bytes.String(), `level=INFO msg=hello k=v`)
}
