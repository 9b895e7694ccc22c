package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
)

// Bounds of the server.
const (
	readHeaderBound = 5 * time.Second
	readBound       = 10 * time.Second
	writeBound      = 30 * time.Second // above scrapes and queries
	idleBound       = time.Minute
	maxHeaderBytes  = 16 << 10
	maxBodyBytes    = 64 << 10
	maxConnections  = 256
	replayRate      = 50 // actions on dead letters a second: what is replayed comes on top of the stream
	// shutdownBound is how long requests may go on once the context of Serve ends.
	shutdownBound = 5 * time.Second
)

// Server is the admin API.
type Server struct {
	deps     Deps
	cfg      Config
	health   *health
	queries  chan struct{} // a slot for each read of the archive
	acting   chan struct{} // the slot of the action under way
	pace     *rate.Limiter // of actions on dead letters
	http     *http.Server
	listener net.Listener // nil before Listen
}

// New returns a server that does not listen yet. The error holds every complaint
// about the configuration.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := errors.Join(cfg.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	if cfg.MaxQueries == 0 {
		cfg.MaxQueries = DefaultMaxQueries
	}
	s := &Server{
		cfg: cfg, deps: deps,
		health:  newHealth(deps.Checks, deps.Clock),
		queries: make(chan struct{}, cfg.MaxQueries),
		acting:  make(chan struct{}, 1),
		pace:    rate.NewLimiter(rate.Limit(replayRate), 1),
	}
	handler, err := s.routes()
	if err != nil {
		return nil, fmt.Errorf("admin API: %w", err)
	}
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderBound, ReadTimeout: readBound,
		WriteTimeout: writeBound, IdleTimeout: idleBound,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(deps.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Handler returns the whole API.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Listen binds the address, so that a port in use is known before anything else
// starts. Requests are answered once Serve runs.
func (s *Server) Listen(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("admin API: %w", err)
	}
	s.listener = netutil.LimitListener(listener, maxConnections)
	s.announce(ctx)
	return nil
}

// announce says who is let in, loudly where it is everyone.
func (s *Server) announce(ctx context.Context) {
	log := s.deps.Logger.With(slog.String("addr", s.Addr()))
	switch {
	case s.cfg.Insecure:
		log.WarnContext(ctx, "the admin API is OPEN TO EVERYONE who reaches it, reads and writes: ADMIN_INSECURE is set")
	case s.cfg.Token == "" && s.cfg.ReadToken == "":
		log.WarnContext(ctx, "the admin API answers probes and metrics only: neither ADMIN_TOKEN nor ADMIN_READ_TOKEN is set")
	default:
		log.InfoContext(ctx, "the admin API listens")
	}
}

// Addr returns the address that is listened on, with the port that was bound.
// Before Listen it is the configured one.
func (s *Server) Addr() string {
	if s.listener == nil {
		return s.cfg.Addr
	}
	return s.listener.Addr().String()
}

// Serve answers requests until ctx ends or Shutdown is called, and returns nil
// after either. When ctx ends, requests in flight get 5 seconds to finish.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("admin API: Listen comes before Serve")
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownBound)
		defer cancel()
		ended <- s.Shutdown(bound)
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		return <-ended
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin API: %w", err)
	}
	return nil
}

// Shutdown stops listening and waits for requests in flight, and for health
// checks, until ctx is done; then it cuts them off and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if s.listener != nil {
		_ = s.listener.Close() // closed by the server already if it was served
	}
	if err = errors.Join(err, s.health.close(ctx)); err != nil {
		return fmt.Errorf("shut the admin API down: %w", err)
	}
	return nil
}
