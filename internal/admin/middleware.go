package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"

	"example.com/billing/internal/domain"
)

// unmatched stands for the route of a request that has none: its path is the
// client's word, and neither a metric nor a log line should hold it.
const unmatched = "unmatched"

// observer measures and logs requests.
type observer struct {
	clock    domain.Clock
	log      *slog.Logger
	duration httpconv.ServerRequestDuration
}

func newObserver(deps *Deps) (*observer, error) {
	meters := deps.Meters
	if meters == nil {
		meters = noop.NewMeterProvider()
	}
	duration, err := httpconv.NewServerRequestDuration(meters.Meter("example.com/billing/internal/admin"),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &observer{clock: deps.Clock, log: deps.Logger, duration: duration}, nil
}

// middleware comes first, so that it sees what all others answer.
func (o *observer) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := o.clock.Now()
		recorder := &recorder{ResponseWriter: w}
		next.ServeHTTP(recorder, r)

		took, route, method := o.clock.Now().Sub(began), routeOf(r), methodOf(r)
		o.duration.Record(r.Context(), took.Seconds(), method, "http",
			semconv.HTTPRoute(route), semconv.HTTPResponseStatusCode(recorder.status))
		o.log.LogAttrs(r.Context(), slog.LevelDebug, "admin request",
			slog.String("method", string(method)), slog.String("route", route),
			slog.Int("status", recorder.status), slog.Duration("duration", took))
	})
}

// routeOf returns the pattern of the request's route, once it has been routed.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" {
		return pattern
	}
	return unmatched
}

// methodOf returns the method, or _OTHER for one that nobody knows, as the
// conventions for metrics ask: a client must not invent time series.
func methodOf(r *http.Request) httpconv.RequestMethodAttr {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return httpconv.RequestMethodAttr(r.Method)
	}
	return httpconv.RequestMethodOther
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int // 0 until one was sent
}

// WriteHeader sends the status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends the body, and a 200 before it when nothing was sent yet.
func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// survive turns a panic into a 500: a bug in a page must not stop the charging.
func survive(log *slog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorder := &recorder{ResponseWriter: w}
			defer func() {
				cause := recover()
				if cause == nil {
					return
				}
				if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(cause)
				}
				log.LogAttrs(r.Context(), slog.LevelError, "admin request panicked",
					slog.String("route", routeOf(r)), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
				if recorder.status != 0 {
					panic(http.ErrAbortHandler) // half an answer: let the client see that it is broken
				}
				writeProblem(recorder, r, newProblem(http.StatusInternalServerError, "an error of our own; the log has it"))
			}()
			next.ServeHTTP(recorder, r)
		})
	}
}

// protect keeps answers out of caches, frames and other people's scripts, and
// bounds the body.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		next.ServeHTTP(w, r)
	})
}
