package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/billing/internal/sandbox/process"
)

// duplicateDatabase is the SQLSTATE of CREATE DATABASE for a name that is there.
const duplicateDatabase = "42P04"

// CreateDatabase creates an empty database; one that exists is left as it is. It takes at most 30 s.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()

	conn, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}

	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())

	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == duplicateDatabase {
		err = nil
	}

	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}

	return nil
}

// PID is the process id of the server.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.proc.PID()
}

// Done is closed when the present server process has ended, by whatever means; after Restart ask again.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.proc.Done()
}

// Kill ends the server with SIGKILL. The data stays for Restart.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.proc.Kill()
}

// Restart ends the server, where it still runs, in the given way and starts it again on the same data, port and socket. It returns
// once the server accepts queries.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	// A server that had to be killed can still be started again: that is what its log is for.
	if err := s.proc.Stop(ctx, stopGrace, signals(mode)...); err != nil && !errors.Is(err, process.ErrKilled) {
		return fmt.Errorf("restart postgresql: %w", err)
	}

	if err := s.launchPatiently(ctx); err != nil {
		return fmt.Errorf("restart postgresql: %w", err)
	}

	return nil
}

// Stop ends the server: fast, after 10 s immediately, after 10 more or the end of ctx by force. A temporary folder is removed. It may be called again.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	err := s.proc.Stop(ctx, stopGrace, signals(Fast)...)
	if err != nil {
		err = fmt.Errorf("stop postgresql: %w", err)
	}

	return errors.Join(err, s.clean())
}

// signals are those of a mode, then the harsher ones.
func signals(mode Mode) []os.Signal {
	if mode == Immediate {
		return []os.Signal{syscall.SIGQUIT}
	}

	return []os.Signal{syscall.SIGINT, syscall.SIGQUIT}
}

// clean removes the temporary folder; there may be none yet.
func (s *Server) clean() error {
	if s.run == "" {
		return nil
	}

	if err := os.RemoveAll(s.run); err != nil {
		return fmt.Errorf("remove the temporary folder: %w", err)
	}

	return nil
}
