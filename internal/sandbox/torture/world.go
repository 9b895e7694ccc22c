package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/orders"
	"example.com/billing/internal/sandbox/postgres"
	"example.com/billing/internal/sandbox/process"
	"example.com/billing/internal/sandbox/run"
)

const (
	topic      = "orders.confirmed"
	group      = "billing-order-confirmed"
	database   = "billing"
	partitions = 6
	// maxMembers is the most victims at a time.
	maxMembers = 3
	// stopTimeout bounds the end of one part of the world.
	stopTimeout = 40 * time.Second
	// askTimeout bounds one question to the database.
	askTimeout = 5 * time.Second
	directConn = 6
)

// The streams of the seed.
const (
	streamStrikes = iota + 1
	streamLoad
	streamSetup
)

// world is everything around the victims of one family.
type world struct {
	options *Options
	family  family
	dir     string
	dice    *rand.Rand // of the strikes, from one goroutine
	began   time.Time

	brokers  brokers
	postgres *postgres.Server
	provider *paymenttest.Server
	sentry   *sentry
	db       *pgxpool.Pool // past the link
	witness  *run.Witness
	setup    run.Options
	env      []string // of billing

	toKafka, toPostgres, toProvider *link

	idle    int // waits for a charge in flight that were in vain, in a row
	wedged  int // how often the embedded broker had to be started anew
	members []*member
	record  record
	orders  int            // given so far, from the goroutine of the strikes
	tasks   sync.WaitGroup // members that are continued or started again aside
	stops   []func(context.Context) error
}

// build starts everything but the victims. On an error nothing runs.
func build(ctx context.Context, o *Options, f family) (w *world, err error) {
	setup := rand.New(rand.NewPCG(f.seed, streamSetup))                                                      //nolint:gosec // repeatable on purpose
	w = &world{options: o, family: f, dice: rand.New(rand.NewPCG(f.seed, streamStrikes)), began: time.Now()} //nolint:gosec // as above
	w.record.reached = make(chan reached, 64)
	if w.dir, err = process.TempDir("", "billingtorture"); err != nil {
		return nil, err
	}
	if err = os.Chmod(w.dir, 0o711); err != nil { //nolint:gosec // the database's user must reach its folder within
		return nil, err
	}
	links := newLinks()
	for _, start := range []func(context.Context, *toxiproxy.ApiServer) error{w.startBrokers, w.startPostgres, w.startProvider} {
		if err = start(ctx, links); err != nil {
			return nil, errors.Join(err, w.stop(ctx))
		}
	}
	store := []string{"kafka", "postgres"}[setup.IntN(2)]
	w.describe(store)
	if w.witness, err = run.OpenWitness(ctx, &w.setup, w.dir, w.brokers.direct(), w.postgres.URL(database), w.provider); err != nil {
		return nil, errors.Join(err, w.stop(ctx))
	}
	w.onStop(func(context.Context) error { w.witness.Close(); return nil })
	w.say("family %s: seed %d, broker %s, OFFSET_STORE=%s, logs in %s", f.name, f.seed, o.Kafka, store, w.dir)
	return w, nil
}

// describe says what billing is told, and how it is judged.
func (w *world) describe(store string) {
	w.env = append([]string{
		"KAFKA_BROKERS=" + w.toKafka.addr(), "KAFKA_TOPIC=" + topic, "KAFKA_GROUP_ID=" + group,
		"KAFKA_EVENTS_TOPIC=" + topic + ".charges", "KAFKA_DLQ_TOPIC=" + topic + ".dlq",
		"DATABASE_URL=" + w.linkedURL(), "PAYMENT_URL=http://" + w.toProvider.addr(),
		"ADMIN_INSECURE=true", "OFFSET_STORE=" + store,
		"PAYMENT_LOOKUP=true", // so that the audit holds every charge against the ledger
	}, w.family.env...)
	w.setup = run.Options{
		Billing: w.options.Billing, Kafka: w.options.Kafka, Topic: topic, Group: group, Partitions: partitions,
		Source: run.Source{Seed: w.family.seed}, Environ: w.options.Environ, Env: w.env,
	}
}

func (w *world) say(format string, args ...any) {
	w.options.Say("%6.1f s  "+format, append([]any{time.Since(w.began).Seconds()}, args...)...)
}

func (w *world) onStop(stop func(context.Context) error) { w.stops = append(w.stops, stop) }

// stop ends the parts in reverse.
func (w *world) stop(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(w.stops) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		errs = append(errs, stop(bounded))
		cancel()
	}
	w.stops = nil
	return errors.Join(errs...)
}

// log opens a part's log.
func (w *world) log(name string) (io.Writer, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // a fixed name in our own folder
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	w.onStop(func(context.Context) error { return f.Close() })
	return f, nil
}

func (w *world) startBrokers(ctx context.Context, links *toxiproxy.ApiServer) error {
	log, err := w.log("broker.log")
	if err != nil {
		return err
	}
	if w.brokers, w.toKafka, err = startBrokers(ctx, w.options.Kafka, w.dir, links, log); err != nil {
		return err
	}
	w.onStop(w.brokers.stop)
	w.onStop(func(context.Context) error { w.toKafka.close(); return nil })
	return orders.EnsureTopic(ctx, w.brokers.direct(), topic, partitions)
}

func (w *world) startPostgres(ctx context.Context, links *toxiproxy.ApiServer) error {
	log, err := w.log("postgres.log")
	if err != nil {
		return err
	}
	if w.postgres, err = postgres.Start(ctx, postgres.Options{Log: log}); err != nil {
		return err
	}
	w.onStop(w.postgres.Stop)
	if err = w.postgres.CreateDatabase(ctx, database); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(w.postgres.URL(database))
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	config.MaxConns = directConn
	if w.db, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	w.onStop(func(context.Context) error { w.db.Close(); return nil })
	upstream := fmt.Sprintf("%s:%d", config.ConnConfig.Host, config.ConnConfig.Port)
	if w.toPostgres, err = openLink(links, "postgres", upstream); err != nil {
		return err
	}
	w.onStop(func(context.Context) error { w.toPostgres.close(); return nil })
	return nil
}

// linkedURL is the database through its link.
func (w *world) linkedURL() string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", w.toPostgres.addr(), database)
}

func (w *world) startProvider(ctx context.Context, links *toxiproxy.ApiServer) (err error) {
	w.sentry = newSentry(w.owned)
	w.provider, err = paymenttest.Listen(ctx, "127.0.0.1:0", paymenttest.Options{Faults: w.calm(), Watch: w.sentry.watch})
	if err != nil {
		return err
	}
	w.onStop(func(context.Context) error { return w.provider.Close() })
	if w.toProvider, err = openLink(links, "provider", w.provider.Addr()); err != nil {
		return err
	}
	w.onStop(func(context.Context) error { w.toProvider.close(); return nil })
	return nil
}

// calm is how the provider behaves between its faults: it declines some.
func (w *world) calm() paymenttest.Faults {
	f := paymenttest.Faults{
		Seed: w.family.seed, IgnoreKeys: w.family.ignoreKeys,
		Latency: paymenttest.Latency{Kind: "uniform", Min: paymenttest.Duration(5 * time.Millisecond), Max: paymenttest.Duration(w.family.latency)},
		Rules:   []paymenttest.Rule{{Action: "402", Rate: declined}},
	}
	return f
}

// declined is the share of charges that the provider declines.
const declined = 0.02

// calling counts the charges in flight: the intents that somebody holds a lease of.
func (w *world) calling(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err = w.db.QueryRow(ctx, `SELECT count(*) FROM charge_intent WHERE state = 'calling'`).Scan(&n)
	return n, err
}

// owned reports whether an intent of the event is being called.
func (w *world) owned(ctx context.Context, id uuid.UUID) (owned bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = w.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM charge_intent WHERE event_id = $1 AND state = 'calling')`, id).Scan(&owned)
	return owned, err
}
