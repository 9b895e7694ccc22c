package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// patience bounds every wait of these tests: reaching it is a failure.
const patience = 30 * time.Second

const (
	topic = "orders.confirmed"
	group = "billing-test"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is one database, one provider and one clock, which any number of
// instances of the service share.
type world struct {
	t        *testing.T
	url      string
	clock    *heldClock
	provider *ledger
	policy   domain.Policy

	mu   sync.Mutex // guards what follows
	conn *pgx.Conn
	next map[int32]int64 // offset of the next record by partition
}

func newWorld(t *testing.T) *world {
	t.Helper()
	databaseURL := storetest.URL(t)
	return &world{
		t: t, url: databaseURL, conn: storetest.Conn(t, databaseURL), next: map[int32]int64{},
		clock:    &heldClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		provider: newLedger(),
		policy: domain.Policy{
			Group: group, ChargeBudget: 10 * time.Second, CommitMargin: 3 * time.Second, LockTimeout: 5 * time.Second,
			Lease: 15 * time.Second, QuickAttempts: 3, MaxInFlight: 64, RetryHorizon: 20 * time.Hour, KeyTTL: 24 * time.Hour,
			PublishEvents: true, PublishLetters: true,
		},
	}
}

// instance is one process of the service: pools, a biller and a worker of its own.
type instance struct {
	*domain.Biller
	t      *testing.T
	world  *world
	name   string
	life   context.Context // until it is killed
	seam   *seam
	gate   *domain.Gate
	worker *domain.Worker
	log    *logBuffer
}

// instance starts one with the world's policy, which options may change.
func (w *world) instance(name string, options ...func(*domain.Policy)) *instance {
	w.t.Helper()
	return w.instanceWith(name, storetest.Config(w.url), options...)
}

func (w *world) instanceWith(name string, c store.Config, options ...func(*domain.Policy)) *instance {
	w.t.Helper()
	s, err := store.New(c)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, s.Close()) })
	policy := w.policy
	policy.Owner = name
	for _, option := range options {
		option(&policy)
	}
	life, end := context.WithCancel(w.t.Context())
	w.t.Cleanup(end)
	i := &instance{t: w.t, world: w, name: policy.Owner, life: life, seam: newSeam(s, end), gate: domain.NewGate(w.clock), log: &logBuffer{}}
	logger := slog.New(slog.NewTextHandler(i.log, nil))
	i.Biller = domain.NewBiller(policy, domain.Decoder{}, i.seam, w.provider, i.gate, w.clock, logger)
	i.worker = domain.NewWorker(i.Biller)
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("%s logged:\n%s", name, i.log)
		}
	})
	return i
}

// bill bills the records as one batch.
func (i *instance) bill(records ...domain.Record) error {
	return i.Bill(i.life, domain.Pass{}, records)
}

// mustBill bills the records as one batch, which succeeds.
func (i *instance) mustBill(records ...domain.Record) {
	i.t.Helper()
	require.NoError(i.t, i.bill(records...))
}

// start bills in the background; the channel yields the result.
func (i *instance) start(records ...domain.Record) <-chan error {
	done := make(chan error, 1)
	go func() { done <- i.bill(records...) }()
	return done
}

// running is a worker that runs.
type running struct {
	t      *testing.T
	cancel context.CancelFunc // it takes no further intent; those it took go on
	done   chan struct{}
}

// stop ends the worker and waits for what it took.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	await(r.t, r.done)
}

// run starts the worker.
func (i *instance) run() *running {
	ctx, cancel := context.WithCancel(context.WithoutCancel(i.t.Context()))
	r := &running{t: i.t, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		i.worker.Run(ctx)
	}()
	return r
}

// settle runs the worker until nothing is due and nothing of its own in flight.
func (i *instance) settle() {
	i.t.Helper()
	i.seam.forgetIdle()
	worker := i.run()
	defer worker.stop()
	i.idle()
}

// idle waits until the running worker has looked in vain, nothing claimed is due
// and it has no lease left.
func (i *instance) idle() {
	i.t.Helper()
	await(i.t, i.seam.idle)
	require.Eventually(i.t, func() bool {
		var left int
		now := i.world.clock.Now()
		i.world.scan(`SELECT count(*) FROM charge_intent WHERE (state = 'calling' AND owner = $1 AND lease_until > $2)
			OR (claimed AND state NOT IN ('parked', 'held') AND due_at <= $2)`,
			[]any{i.name, now}, &left)
		return left == 0 && now.Equal(i.world.clock.Now()) // a hook may move it meanwhile
	}, patience, 2*time.Millisecond)
}

// event is an order event and the record that first carried it.
type event struct {
	id     uuid.UUID
	order  int64
	record domain.Record
}

// event returns a fresh event of an order over an amount in EUR, at the next
// offset of partition 0.
func (w *world) event(order int64, amount string) event {
	return w.eventOf(uuid.Must(uuid.NewV7()), order, amount)
}

func (w *world) eventOf(id uuid.UUID, order int64, amount string) event {
	value, err := json.Marshal(map[string]any{
		"eventId": id, "eventType": "order.confirmed.v1", "occurredAt": "2026-03-01T11:59:00Z",
		"orderId": order, "customerId": 7, "totalAmount": amount, "currency": "EUR",
	})
	require.NoError(w.t, err)
	record := domain.Record{Timestamp: w.clock.Now(), Key: fmt.Append(nil, order), Value: value}
	return event{id: id, order: order, record: w.republished(0, record)}
}

// altered returns a record with the event's id and another amount.
func (w *world) altered(e event, amount string) domain.Record {
	return w.eventOf(e.id, e.order, amount).record
}

// republished returns the record at the next offset of a partition.
func (w *world) republished(partition int32, r domain.Record) domain.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Coordinates = domain.Coordinates{Topic: topic, Partition: partition, Offset: w.next[partition]}
	w.next[partition]++
	return r
}

// heldClock stands still until a test moves it.
type heldClock struct {
	mu     sync.Mutex
	now    time.Time
	asked  int
	wanted int           // how often it is to be asked before told is closed
	told   chan struct{} // nil while nobody waits
}

func (c *heldClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.told != nil && c.asked >= c.wanted {
		close(c.told)
		c.told = nil
	}
	return c.now
}

// afterReads is closed once the time was asked for so many times more: whoever
// polls by this clock has then come round.
func (c *heldClock) afterReads(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := make(chan struct{})
	c.wanted, c.told = c.asked+n, told
	return told
}

func (c *heldClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBuffer keeps what an instance logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// await receives from a channel, or fails the test when it takes too long.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "waited for too long")
		panic("unreachable")
	}
}
