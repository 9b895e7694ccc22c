package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/apache"
	"example.com/billing/internal/sandbox/broker"
	"example.com/billing/internal/sandbox/orders"
	"example.com/billing/internal/sandbox/postgres"
	"example.com/billing/internal/sandbox/process"
)

const (
	// stopTimeout bounds the orderly end of one part.
	stopTimeout = 30 * time.Second
	database    = "billing"
	logMode     = 0o644
)

// parts are the world around billing, in the order of their start.
type parts struct {
	options  *Options
	dir      string // logs, and the data of what is kept
	fail     context.CancelCauseFunc
	brokers  []string
	provider *paymenttest.Server
	url      string // of the database
	books    *books
	watcher  *watcher
	stops    []func(context.Context) error
}

// startParts starts broker, database and provider. On an error none runs, and what is returned is their folder. A part
// that ends by itself later on fails the run.
func startParts(ctx context.Context, o *Options, fail context.CancelCauseFunc, say func(string, ...any)) (*parts, error) {
	p := &parts{options: o, fail: fail}
	for _, start := range []func(context.Context) error{p.makeFolder, p.startBroker, p.startDatabase, p.startProvider} {
		if err := start(ctx); err != nil {
			return p, errors.Join(err, p.stop(ctx))
		}
	}
	say("run folder  %s", p.dir)
	say("broker      %s (%s)", strings.Join(p.brokers, ","), o.setup().Broker)
	say("database    %s", p.url)
	say("provider    %s/_ledger", p.provider.URL())
	return p, nil
}

// stop ends the parts in reverse. It may be called again.
func (p *parts) stop(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(p.stops) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		errs = append(errs, stop(bounded))
		cancel()
	}
	p.stops = nil
	return errors.Join(errs...)
}

func (p *parts) onStop(stop func(context.Context) error) { p.stops = append(p.stops, stop) }

func (p *parts) makeFolder(context.Context) (err error) {
	if p.options.Keep {
		p.dir, err = os.MkdirTemp("", "billing-sandbox-")
	} else {
		p.dir, err = process.TempDir("", "billingrun")
	}
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	// The database's user may be another, and must reach its folder within.
	return os.Chmod(p.dir, 0o711) //nolint:gosec // nothing secret lies in it
}

// log opens a part's log in the run folder.
func (p *parts) log(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, logMode) //nolint:gosec // a fixed name in our own folder
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}

// kept is a folder for data in the run folder where it is kept, else "".
func (p *parts) kept(name string) string {
	if !p.options.Keep {
		return ""
	}
	return filepath.Join(p.dir, name)
}

// watch fails the run when a part ends by itself.
func (p *parts) watch(what string, done <-chan struct{}) {
	ended := make(chan struct{})
	p.onStop(func(context.Context) error { close(ended); return nil })
	go func() {
		select {
		case <-done:
			p.fail(fmt.Errorf("%s ended by itself, see its log in %s", what, p.dir))
		case <-ended:
		}
	}()
}

func (p *parts) startBroker(ctx context.Context) error {
	log, err := p.log("broker.log")
	if err != nil {
		return err
	}
	p.onStop(func(context.Context) error { return log.Close() })
	o := p.options
	switch {
	case o.Brokers != "":
		p.brokers = strings.Split(o.Brokers, ",")
	case o.Kafka == KafkaApache:
		b, err := apache.Start(ctx, apache.Options{Log: log, Dir: p.kept("kafka")})
		if err != nil {
			return err
		}
		p.brokers = b.Addrs()
		p.onStop(b.Stop)
		p.watch("Apache Kafka", b.Done())
	default:
		// An endless run would fill the memory: its records lie on disk.
		dir := p.kept("kafka")
		if o.Source.Endless() {
			dir = filepath.Join(p.dir, "kafka")
		}
		b, err := broker.Start(broker.Options{Log: log, DataDir: dir})
		if err != nil {
			return err
		}
		p.brokers = b.Addrs()
		p.onStop(func(context.Context) error { b.Close(); return nil })
	}
	if err := orders.EnsureTopic(ctx, p.brokers, o.Topic, o.Partitions); err != nil {
		return err
	}
	if p.watcher, err = newWatcher(p.brokers, o.Topic, o.Group); err != nil {
		return err
	}
	p.onStop(func(context.Context) error { p.watcher.close(); return nil })
	return p.watcher.checkEmpty(ctx)
}

func (p *parts) startDatabase(ctx context.Context) error {
	p.url = p.options.DatabaseURL
	if p.url == "" {
		if err := p.startPostgres(ctx); err != nil {
			return err
		}
	}
	var err error
	if p.books, err = openBooks(ctx, p.url, p.options.Group); err != nil {
		return err
	}
	p.onStop(func(context.Context) error { p.books.close(); return nil })
	return p.books.checkEmpty(ctx)
}

func (p *parts) startPostgres(ctx context.Context) error {
	log, err := p.log("postgres.log")
	if err != nil {
		return err
	}
	p.onStop(func(context.Context) error { return log.Close() })
	server, err := postgres.Start(ctx, postgres.Options{Durable: true, Dir: p.kept("postgres"), Log: log})
	if err != nil {
		return err
	}
	p.onStop(server.Stop)
	p.watch("PostgreSQL", server.Done())
	p.url = server.URL(database)
	return server.CreateDatabase(ctx, database)
}

func (p *parts) startProvider(ctx context.Context) (err error) {
	p.provider, err = paymenttest.Listen(ctx, "127.0.0.1:0", paymenttest.Options{Faults: p.options.faults()})
	if err != nil {
		return err
	}
	p.onStop(func(context.Context) error { return p.provider.Close() })
	return nil
}
