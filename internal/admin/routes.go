package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"example.com/billing/internal/domain"
)

// Paths of the routes.
const (
	pathLive    = "/livez"
	pathReady   = "/readyz"
	pathHealth  = "/healthz"
	pathMetrics = "/metrics"
	pathOpenAPI = "/openapi.yaml"
	pathStats   = "/api/v1/dedup/stats"
	pathSeries  = "/api/v1/dedup/series"
	pathLog     = "/api/v1/dedup/duplicates"
	pathEvent   = "/api/v1/events/{eventId}"
	pathCharges = "/api/v1/charges"
	pathLetters = "/api/v1/dead-letters"
	pathLetter  = "/api/v1/dead-letters/{id}"
	pathReplays = "/api/v1/dead-letters/replay"
	pathReplay  = "/api/v1/dead-letters/{id}/replay"
	pathDiscard = "/api/v1/dead-letters/{id}/discard"
	pathConsume = "/api/v1/consumer"
	pathPause   = "/api/v1/consumer/pause"
	pathResume  = "/api/v1/consumer/resume"
	pathConfig  = "/api/v1/config"
)

// queryBound is the longest that a request waits for the archive, its turn included.
const queryBound = 5 * time.Second

// endpoint answers a request with a value to be shown as JSON, or with an error:
// a [*problem] is shown as it is, everything else as a 500.
type endpoint func(r *http.Request) (any, error)

// routes returns the API with its concerns around it, the outermost first.
func (s *Server) routes() (http.Handler, error) {
	observer, err := newObserver(&s.deps)
	if err != nil {
		return nil, err
	}
	mux := chi.NewRouter()
	mux.Use(
		observer.middleware,         // sees what every other one answers
		survive(s.deps.Logger),      // turns a panic of any other one into an answer
		protect,                     // refusals carry its headers too
		newGuard(&s.cfg).middleware, // nothing is routed, or found missing, for strangers
	)
	for path, handle := range map[string]endpoint{
		pathLive: s.live, pathReady: s.ready, pathHealth: s.healthy,
		pathStats: s.stats, pathSeries: s.series, pathLog: s.duplicates, pathEvent: s.event, pathCharges: s.charges,
		pathLetters: s.letters, pathLetter: s.letter, pathConsume: s.consumer, pathConfig: s.config,
	} {
		s.get(mux, path, s.answer(handle))
	}
	for path, handle := range map[string]endpoint{
		pathReplays: s.replayAll, pathReplay: s.replay, pathDiscard: s.discard,
		pathPause: s.pause, pathResume: s.resume,
	} {
		mux.Method(http.MethodPost, path, s.answer(handle))
	}
	s.get(mux, pathMetrics, s.deps.Metrics)
	s.get(mux, pathOpenAPI, http.HandlerFunc(s.specification))
	mux.NotFound(unrouted(mux))
	mux.MethodNotAllowed(unrouted(mux))
	return mux, nil
}

// get routes GET and HEAD; net/http drops the body of the latter.
func (s *Server) get(mux chi.Router, path string, handler http.Handler) {
	mux.Method(http.MethodGet, path, handler)
	mux.Method(http.MethodHead, path, handler)
}

// answer turns an endpoint into a handler.
func (s *Server) answer(handle endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, err := handle(r)
		if err == nil {
			writeJSON(w, typeJSON, http.StatusOK, value)
			return
		}
		var shown *problem
		if !errors.As(err, &shown) {
			s.deps.Logger.LogAttrs(r.Context(), slog.LevelError, "admin request failed",
				slog.String("route", routeOf(r)), slog.Any("error", err))
			shown = newProblem(http.StatusInternalServerError, "an error of our own; the log has it")
		}
		writeProblem(w, r, shown)
	})
}

// specification serves the contract (RFC 9512 names its type).
func (s *Server) specification(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(s.deps.OpenAPI) // the client is gone: nobody to tell
}

// maxPathTold bounds how much of a path that nobody knows is repeated in words: it may be
// as long as the client likes. Instance has the whole of it.
const maxPathTold = 200

// unrouted answers what no route does: 405 where another method would be routed,
// with those in Allow, and 404 otherwise. Whoever sees it has shown a token, unless the
// route takes none.
func unrouted(mux chi.Router) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path, told := r.URL.Path, r.URL.EscapedPath()
		if r.URL.RawPath != "" {
			path = r.URL.RawPath
		}
		if len(told) > maxPathTold {
			told = told[:maxPathTold] + "…"
		}
		if allowed := methodsOf(mux, path); len(allowed) > 0 {
			list := strings.Join(allowed, ", ")
			w.Header().Set("Allow", list)
			writeProblem(w, r, newProblem(http.StatusMethodNotAllowed, "this method is none of "+told+", which has: "+list))
			return
		}
		detail := "there is no route " + told + ": " + pathOpenAPI + " lists those that there are"
		if bare := strings.TrimRight(path, "/"); bare != path && len(methodsOf(mux, bare)) > 0 {
			detail = "there is no route " + told + ", but there is one without a slash at its end"
		}
		writeProblem(w, r, notFound(detail))
	}
}

// methodsOf returns the methods that are routed for a path: none where it is unknown.
func methodsOf(mux chi.Router, path string) (methods []string) {
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		if mux.Match(chi.NewRouteContext(), method, path) {
			methods = append(methods, method)
		}
	}
	return methods
}

// query reads from the archive when it is the request's turn.
func query[T any](s *Server, r *http.Request, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(r.Context(), queryBound)
	defer cancel()
	var none T
	select {
	case s.queries <- struct{}{}:
		defer func() { <-s.queries }()
	case <-ctx.Done():
		return none, newProblem(http.StatusServiceUnavailable, "too many requests are reading already; try again")
	}
	result, err := read(ctx)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, domain.ErrCursor):
		return none, errCursor()
	case r.Context().Err() != nil: // the client is gone: no fault of the archive
		return none, newProblem(http.StatusServiceUnavailable, "the request was given up")
	}
	s.deps.Logger.LogAttrs(ctx, slog.LevelError, "the admin API cannot read the archive",
		slog.String("route", routeOf(r)), slog.Any("error", err))
	return none, newProblem(http.StatusServiceUnavailable, "the database does not answer; the log has the reason")
}
