package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

// Mode is a way of running billing.
type Mode string

// The ways.
const (
	// Billing is billing with its defaults.
	Billing Mode = "billing"
	// Sequential is billing with one event per transaction and one at a time per partition.
	Sequential Mode = "sequential"
	// Booked is billing with its positions in the database.
	Booked Mode = "booked"
)

const (
	// readyTimeout bounds the start of billing.
	readyTimeout = 60 * time.Second
	// billingGrace is above SHUTDOWN_TIMEOUT.
	billingGrace = 40 * time.Second
	// defaultConns is the default of DATABASE_MAX_CONNS, and besides conns what billing needs beside its transactions.
	defaultConns, besides = 20, 8
)

// errEndedWell stands for exit code 0 of a process that was to go on.
var errEndedWell = errors.New("exit status 0")

// settings are the variables that make the mode.
func (m Mode) settings(partitions int32) []string {
	switch m {
	case Billing:
		return nil
	case Booked:
		return []string{"OFFSET_STORE=postgres"}
	case Sequential:
	}
	n := int(partitions)
	return []string{
		"BATCH_MAX=1", fmt.Sprintf("MAX_TRANSACTIONS=%d", n), fmt.Sprintf("MAX_IN_FLIGHT=%d", n),
		fmt.Sprintf("DATABASE_MAX_CONNS=%d", max(defaultConns, n+besides)),
	}
}

// subject is one billing process under measurement.
type subject struct {
	*process.Process
	log  *os.File
	port int
}

// logPath is where every billing of this world logs.
func (w *World) logPath() string { return filepath.Join(w.dir, "billing.log") }

// startSubject starts billing; it is not ready yet.
func (w *World) startSubject(mode Mode, topic, group, database string, partitions int32, more ...string) (*subject, error) {
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	log, err := openLog(w.logPath())
	if err != nil {
		return nil, err
	}
	env := environ(w.options.Environ,
		"KAFKA_BROKERS="+w.brokers, "KAFKA_TOPIC="+topic, "KAFKA_GROUP_ID="+group, "DATABASE_URL="+w.postgres.URL(database),
		"PAYMENT_URL="+w.provider.url, "ADMIN_ADDR=127.0.0.1:"+strconv.Itoa(ports[0]), "ADMIN_INSECURE=true")
	env = append(env, more...)
	proc, err := process.Start(process.Spec{
		Path: w.options.Billing, Args: []string{"serve"}, Env: append(env, mode.settings(partitions)...), Dir: w.dir,
		Log: log, DeathSignal: syscall.SIGKILL,
	})
	if err != nil {
		_ = log.Close()
		return nil, err
	}
	return &subject{Process: proc, log: log, port: ports[0]}, nil
}

// awaitReady waits until it is ready.
func (s *subject) awaitReady(ctx context.Context) error {
	return await(ctx, readyTimeout, readyPoll, "billing is ready", func() (bool, error) {
		if err := s.alive(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", s.port), http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// alive returns an error once it has ended.
func (s *subject) alive() error {
	select {
	case <-s.Done():
		return fmt.Errorf("billing ended by itself: %w: %s", cmp.Or(s.Err(), errEndedWell), s.Tail())
	default:
		return nil
	}
}

// end asks it to end, which it must do in order.
func (s *subject) end(ctx context.Context) error {
	defer s.log.Close()
	if err := s.Stop(ctx, billingGrace, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end billing: %w", err)
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("billing, asked to end: %w: %s", err, s.Tail())
	}
	return nil
}

// await looks every so often until something is so.
func await(ctx context.Context, limit, pause time.Duration, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %s in vain: %s", limit, what))
	defer cancel()
	for {
		done, err := so()
		if err != nil || done {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}
