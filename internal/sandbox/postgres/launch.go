package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

// launchPatiently waits for the last processes of a killed server, which notice its death within moments.
func (s *Server) launchPatiently(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	var err error

	for range launchTries {
		if err = s.launch(ctx); !errors.Is(err, errStillHeld) {
			return err
		}

		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}

	return err
}

// launch starts the server and waits until it is ready. On an error no process is left.
func (s *Server) launch(ctx context.Context) error {
	spec := s.spec("postgres", arguments(s.options, s.data, s.run, s.port)...)
	spec.Log = s.options.Log

	proc, err := process.Start(spec)
	if err != nil {
		return err
	}

	if err := s.awaitReady(ctx, proc); err != nil {
		stop := proc.Stop(context.WithoutCancel(ctx), stopGrace, syscall.SIGQUIT)

		return errors.Join(err, stop)
	}

	s.proc = proc

	return nil
}

func (s *Server) awaitReady(ctx context.Context, proc *process.Process) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()

	for {
		select {
		case <-proc.Done():
			return died(proc)
		case <-ctx.Done():
			return fmt.Errorf("wait until ready: %w: %s", context.Cause(ctx), proc.Tail())
		case <-tick.C:
		}

		if s.ready(proc.PID()) {
			return nil
		}
	}
}

// ready reads postmaster.pid. The pid is compared, as a killed server leaves a file that says "ready".
func (s *Server) ready(pid int) bool {
	text, err := os.ReadFile(filepath.Join(s.data, pidFile))
	if err != nil {
		return false
	}

	lines := strings.Split(string(text), "\n")

	return len(lines) > statusLine && strings.TrimSpace(lines[pidLine]) == strconv.Itoa(pid) &&
		strings.TrimSpace(lines[statusLine]) == "ready"
}

// died explains the end of a server that never was ready. Its messages are in English, as the locale is C.
func died(proc *process.Process) error {
	text := proc.Tail()
	err := fmt.Errorf("server ended (%v): %s", proc.Err(), text) //nolint:errorlint // may be nil

	switch {
	case strings.Contains(text, "Address already in use"):
		return errors.Join(errPortTaken, err)
	case strings.Contains(text, "pre-existing shared memory block"), strings.Contains(text, `lock file "postmaster.pid" already exists`):
		return errors.Join(errStillHeld, err)
	default:
		return err
	}
}
