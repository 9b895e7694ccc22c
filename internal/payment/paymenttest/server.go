package paymenttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a provider that listens.
type Server struct {
	*Provider
	listener net.Listener
	http     *http.Server
	served   chan error
}

// Listen starts a provider on an address; "127.0.0.1:0" picks a free port. The
// caller closes it.
func Listen(ctx context.Context, address string, options Options) (*Server, error) {
	provider, err := New(options)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("payment provider: %w", err)
	}
	handler := http.Handler(provider)
	if options.Watch != nil {
		handler = options.Watch(handler)
	}
	s := &Server{
		Provider: provider, listener: listener,
		http:   &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// URL is what PAYMENT_URL is set to.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Addr is the address it listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all waits, lets the answers out for a second at most, and ends every
// connection. It returns why serving ended, if that was not Close.
func (s *Server) Close() error {
	s.Provider.Close()
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close()
	}
	if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("payment provider: serve: %w", err)
	}
	return nil
}
