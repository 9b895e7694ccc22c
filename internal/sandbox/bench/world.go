package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/postgres"
	"example.com/billing/internal/sandbox/process"
)

// partGrace bounds the orderly end of one part.
const partGrace = 30 * time.Second

// World is broker, database server and provider, each in a process of its own.
type World struct {
	options  *Options
	dir      string
	brokers  string
	provider provider
	postgres *postgres.Server
	kafka    *kgo.Client
	admin    *kadm.Client
	books    *books
	stops    []func(context.Context) error
	serial   int // numbers topics, groups, databases and orders
}

// StartWorld starts the parts. On an error none is left.
func StartWorld(ctx context.Context, o *Options) (*World, error) {
	w := &World{options: o}
	for _, start := range []func(context.Context) error{w.makeFolder, w.startPostgres, w.startBroker, w.startProvider} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(err, w.Stop(ctx))
		}
	}
	return w, nil
}

// Stop ends the parts in reverse and removes their data.
func (w *World) Stop(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(w.stops) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), partGrace)
		errs = append(errs, stop(bounded))
		cancel()
	}
	w.stops = nil
	return errors.Join(errs...)
}

func (w *World) onStop(stop func(context.Context) error) { w.stops = append(w.stops, stop) }

func (w *World) makeFolder(context.Context) (err error) {
	if w.dir, err = process.TempDir(w.options.Dir, "billingbench"); err != nil {
		return err
	}
	w.onStop(func(context.Context) error { return os.RemoveAll(w.dir) })
	// The database's user may be another, and must reach its folder within.
	return os.Chmod(w.dir, 0o711) //nolint:gosec // nothing secret lies in it
}

func (w *World) startPostgres(ctx context.Context) (err error) {
	log, err := openLog(filepath.Join(w.dir, "postgres.log"))
	if err != nil {
		return err
	}
	w.onStop(func(context.Context) error { return log.Close() })
	w.postgres, err = postgres.Start(ctx, postgres.Options{
		Durable: true, Dir: filepath.Join(w.dir, "postgres"), Log: log,
		// When each charge was committed is read from the server itself.
		Params: map[string]string{"track_commit_timestamp": "on"},
	})
	if err != nil {
		return err
	}
	w.onStop(w.postgres.Stop)
	w.books, err = openBooks(ctx, w.postgres)
	if err == nil {
		w.onStop(func(context.Context) error { w.books.close(); return nil })
	}
	return err
}

func (w *World) startBroker(ctx context.Context) error {
	c, err := startChild(ctx, process.Spec{
		Path: w.options.Sandbox, Args: []string{"broker", "--dir", filepath.Join(w.dir, "kafka")}, Env: environ(w.options.Environ),
	}, "127.0.0.1:")
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	w.brokers = c.address
	w.onStop(c.end)
	w.kafka, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(w.brokers, ",")...))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	w.onStop(func(context.Context) error { w.kafka.Close(); return nil })
	w.admin = kadm.NewClient(w.kafka)
	return nil
}

func (w *World) startProvider(ctx context.Context) error {
	c, err := startChild(ctx, process.Spec{
		Path: w.options.Sandbox, Args: []string{"bench-provider"}, Env: environ(w.options.Environ),
	}, "http://")
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	w.provider = provider{url: c.address}
	w.onStop(c.end)
	return nil
}

// next is a number that this world has not used yet.
func (w *World) next() int { w.serial++; return w.serial }

// name makes a name that this world has not used yet.
func (w *World) name(kind string) string { return kind + "-" + strconv.Itoa(w.next()) }
