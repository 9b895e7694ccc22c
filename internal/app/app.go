package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"example.com/billing/api"
	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/retention"
	"example.com/billing/internal/store"
	"example.com/billing/internal/telemetry"
)

// App is the whole service, built but not yet running.
type App struct {
	settings  Settings
	clock     domain.Clock
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	store     *store.Store
	gate      *domain.Gate
	biller    *domain.Biller
	operator  *domain.Operator
	worker    *domain.Worker
	consumer  *kafka.Consumer
	outbox    *store.Outbox // nil where nothing is published, as is relay
	relay     *kafka.Relay
	forget    *forgetting
	started   time.Time
	facts     *topicFacts
	admin     *admin.Server
	listening bool
	prepared  atomic.Bool   // the schema is there
	faults    domain.Faults // nil but in tests
}

// New builds every part in one straight line. It connects to nobody.
func New(ctx context.Context, s Settings, p Process) (*App, error) {
	a := &App{settings: s, clock: domain.SystemClock{}, faults: p.Faults}
	a.started = a.clock.Now()
	var err error
	if a.telemetry, err = telemetry.Setup(ctx, telemetry.Config{
		ServiceName: "billing", ServiceVersion: p.version(),
		LogLevel: s.Log.Level, LogFormat: s.Log.Format, LogOutput: p.Err,
		Getenv: p.getenv, Clock: a.clock,
	}); err != nil {
		return nil, usageError{fmt.Errorf("configuration:\n%w", err)}
	}
	a.log = a.telemetry.Logger()
	if a.store, err = store.New(s.store()); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	client, err := payment.New(s.payment(), payment.Tools{
		Clock: a.clock, Tracer: a.telemetry.Tracers(), Meter: a.telemetry.Meters(),
	})
	if err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	a.gate = domain.NewGate(a.clock)
	name := owner()
	policy := s.policy(name)
	policy.Faults = a.faults
	policy.Limiter, policy.Breaker = payment.NewLimiter(s.Flow.MaxInFlight), payment.NewBreaker()
	if s.Payment.Lookup {
		policy.Finder = client
	}
	biller := domain.NewBiller(policy, domain.Decoder{RequireV7: s.Flow.RequireUUIDv7},
		a.store, client, a.gate, a.clock, a.log)
	a.biller, a.worker = biller, domain.NewWorker(biller)
	a.operator = domain.NewOperator(policy, domain.Decoder{RequireV7: s.Flow.RequireUUIDv7}, a.store, a.store, policy.Finder, a.clock, a.log)
	if err = showGate(a.telemetry.Meters(), a.gate); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	if a.consumer, err = kafka.New(a.consuming(name), biller, a.log, kafka.Telemetry{
		Tracers: a.telemetry.Tracers(), Meters: a.telemetry.Meters(), Propagator: a.telemetry.Propagator(),
	}, a.clock); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	if err = a.newRelay(); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	if a.forget, err = newForgetting(&a.settings, a.store, name, a.telemetry.Meters(), retention.Parts{Clock: a.clock, Logger: a.log}); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	a.facts = &topicFacts{clock: a.clock, ask: a.consumer.TopicRetention}
	if a.admin, err = a.newAdmin(); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	return a, nil
}

func (a *App) newAdmin() (*admin.Server, error) {
	spec, err := api.FS.ReadFile("openapi.yaml")
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	s := &a.settings
	return admin.New(s.admin(), admin.Deps{
		Archive: a.store, Operator: a.operator, Group: s.Kafka.GroupID, Retention: s.Flow.DedupRetention,
		Consumer: a.consumerStatus, Intake: a.consumer, Config: a.settings.effective, Checks: a.checks(), Alive: a.alive,
		Metrics: a.telemetry.MetricsHandler(), OpenAPI: spec, Meters: a.telemetry.Meters(),
		Clock: a.clock, Logger: a.log,
	})
}

// Serve builds the service and runs it until ctx ends.
func Serve(ctx context.Context, s Settings, p Process) error {
	a, err := New(ctx, s, p)
	if err != nil {
		return err
	}
	defer tendHeap(context.WithoutCancel(ctx), p.getenv)()
	return a.Run(ctx)
}

// Listen binds the admin address, so that it is known before anything runs. Run
// does so itself where it was not done before.
func (a *App) Listen(ctx context.Context) (addr string, err error) {
	if a.listening {
		return a.admin.Addr(), nil
	}
	if err := a.admin.Listen(ctx); err != nil {
		return "", err
	}
	a.listening = true
	return a.admin.Addr(), nil
}

// Run serves until ctx ends, then drains within the shutdown timeout and closes
// everything in reverse. It returns an error when the service cannot go on, or
// when the drain ran out of time.
func (a *App) Run(ctx context.Context) error {
	addr, err := a.Listen(ctx)
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	a.log.InfoContext(ctx, "starting", "admin", addr, "topic", a.settings.Kafka.Topic, "group", a.settings.Kafka.GroupID)
	a.log.InfoContext(ctx, "configuration", a.settings.logged()...)
	for _, i := range a.settings.Inequalities() {
		a.log.InfoContext(ctx, "safety inequality", "is", i.String())
	}

	served := make(chan error, 1)
	go func() { served <- a.admin.Serve(context.WithoutCancel(ctx)) }()

	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worked := make(chan error, 1)
	go func() { worked <- a.work(work) }()

	select {
	case err = <-worked: // could not start, or a fatal error
	case err = <-served:
		cancel(errors.New("the admin server ended"))
		err = errors.Join(err, a.await(worked))
	case <-ctx.Done():
		a.log.InfoContext(ctx, "stopping", "within", a.settings.ShutdownTimeout.String())
		err = a.await(worked)
	}
	return errors.Join(err, a.close(context.WithoutCancel(ctx)))
}

// await waits for the work to end, at most for the shutdown timeout.
func (a *App) await(worked <-chan error) error {
	t := time.NewTimer(a.settings.ShutdownTimeout)
	defer t.Stop()
	select {
	case err := <-worked:
		return err
	case <-t.C:
		return fmt.Errorf("work did not end within SHUTDOWN_TIMEOUT (%s)", a.settings.ShutdownTimeout)
	}
}

// work waits for the neighbours, then consumes and retries until ctx ends.
func (a *App) work(ctx context.Context) error {
	if err := a.prepare(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	a.prepared.Store(true)
	a.log.InfoContext(ctx, "ready")
	ctx, cancel := context.WithCancel(ctx)
	retried := make(chan struct{})
	go func() {
		defer close(retried)
		a.worker.Run(ctx)
	}()
	endRelay := a.startRelay(ctx)
	waitForget := a.forget.start(ctx)
	waitStalled := a.startStalled(ctx)
	err := a.consumer.Run(ctx)
	cancel()
	<-retried
	waitStalled()
	waitForget()
	a.biller.Drain()
	endRelay() // after the last commit
	return err
}

// unlessStopped drops an error that came of being asked to stop before it began.
func unlessStopped(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}

// close takes the parts down in reverse of New.
func (a *App) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	if a.admin != nil {
		errs = append(errs, a.admin.Shutdown(ctx))
	}
	if a.consumer != nil {
		errs = append(errs, a.consumer.Close())
	}
	errs = append(errs, a.closeRelay())
	if a.forget != nil {
		errs = append(errs, a.forget.close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	errs = append(errs, a.telemetry.Shutdown(ctx))
	return errors.Join(errs...)
}

// owner names this process in leases: the host and a random part.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "billing"
	}
	return host + "-" + uuid.NewString()[:8]
}

func (p Process) getenv(name string) string {
	for _, variable := range slices.Backward(p.Environ) {
		if key, value, ok := strings.Cut(variable, "="); ok && key == name {
			return value
		}
	}
	return ""
}
