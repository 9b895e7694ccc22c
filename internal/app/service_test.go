package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/app"
	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store/storetest"
)

// patience bounds every wait for the service to get somewhere.
const patience = 90 * time.Second

// world is a broker, a database and a provider, with any number of services
// between them. None of them knows that it is a test.
type world struct {
	t        *testing.T
	brokers  []string
	topic    string
	group    string
	db       *pgxpool.Pool
	url      string
	provider *paymenttest.Provider
	payURL   string
	kafka    *kgo.Client
	admin    *kadm.Client
	services []*service
	offsets  string // OFFSET_STORE
}

// running shows the logs of the services, for a test that fails.
func (w *world) running() string {
	var logs strings.Builder
	for _, s := range w.services {
		fmt.Fprintf(&logs, "--- %s\n%s\n", s.Addr, s.Logs)
	}
	return logs.String()
}

func setup(t *testing.T, partitions int32, faults paymenttest.Faults) *world {
	t.Helper()
	return setupIn(t, "kafka", partitions, faults)
}

// setupIn is setup with services that keep their positions there.
func setupIn(t *testing.T, offsets string, partitions int32, faults paymenttest.Faults) *world {
	t.Helper()
	name := uuid.NewString()[:8]
	w := &world{offsets: offsets, t: t, brokers: brokersUnderTest(t), topic: "orders-" + name, group: "billing-" + name, url: storetest.URL(t)}

	var err error
	w.db, err = pgxpool.New(t.Context(), w.url)
	require.NoError(t, err)
	t.Cleanup(w.db.Close)

	w.provider, err = paymenttest.New(paymenttest.Options{Faults: faults})
	require.NoError(t, err)
	server := httptest.NewServer(w.provider)
	t.Cleanup(func() { w.provider.Close(); server.Close() })
	w.payURL = server.URL

	w.kafka, err = kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(4<<20), kgo.MaxBufferedRecords(100_000))
	require.NoError(t, err)
	t.Cleanup(w.kafka.Close)
	w.admin = kadm.NewClient(w.kafka)
	size := "4194304"
	created, err := w.admin.CreateTopic(t.Context(), partitions, 1, map[string]*string{"max.message.bytes": &size}, w.topic)
	require.NoError(t, err)
	require.NoError(t, created.Err)
	return w
}

// service is one running billing.
type service struct {
	t    *testing.T
	Addr string
	Logs *lockedBuffer
	stop context.CancelFunc
	done chan error
}

// start runs a service until the test ends or Stop. Env overrides the defaults.
func (w *world) start(env map[string]string) *service {
	w.t.Helper()
	vars := map[string]string{
		"KAFKA_BROKERS": strings.Join(w.brokers, ","), "KAFKA_TOPIC": w.topic, "KAFKA_GROUP_ID": w.group,
		"KAFKA_EVENTS_TOPIC": w.eventsTopic(), "KAFKA_DLQ_TOPIC": w.dlqTopic(),
		"KAFKA_SESSION_TIMEOUT": sessionTimeout, "DATABASE_URL": w.url, "PAYMENT_URL": w.payURL,
		"PAYMENT_TIMEOUT": "1s", "CHARGE_BUDGET": "2s", "ADMIN_ADDR": "127.0.0.1:0", "ADMIN_INSECURE": "true",
		"OFFSET_STORE": w.offsets,
	}
	maps.Copy(vars, env)
	var environ []string
	for k, v := range vars {
		environ = append(environ, k+"="+v)
	}
	settings, err := app.Load(environ)
	require.NoError(w.t, err)

	logs := &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	a, err := app.New(ctx, settings, app.Process{Environ: environ, Out: io.Discard, Err: logs})
	require.NoError(w.t, err)
	s := &service{t: w.t, Logs: logs, stop: cancel, done: make(chan error, 1)}
	s.Addr, err = a.Listen(ctx)
	require.NoError(w.t, err)
	go func() { s.done <- a.Run(ctx) }()
	w.services = append(w.services, s)
	w.t.Cleanup(func() { s.Stop() })
	return s
}

// patient adds settings under which no attempt times out, though the machine be slow. An attempt that does is one
// without an answer: its event is POSTed again, and rightly, with the same key.
func patient(env map[string]string) map[string]string {
	all := map[string]string{"PAYMENT_TIMEOUT": "60s", "CHARGE_BUDGET": "60s", "SHUTDOWN_TIMEOUT": "120s"}
	maps.Copy(all, env)
	return all
}

// Stop asks the service to stop, and expects a clean drain.
func (s *service) Stop() {
	s.t.Helper()
	s.stop()
	select {
	case err, running := <-s.done:
		if running {
			require.NoError(s.t, err, s.Logs.String())
			close(s.done)
		}
	case <-time.After(patience):
		require.FailNow(s.t, "the service does not stop", s.Logs.String())
	}
}

// order is one event on its way into the topic.
type order struct {
	id     uuid.UUID
	order  int64
	amount string
	cur    string
}

func newOrder(n int64) order {
	return order{id: uuid.Must(uuid.NewV7()), order: n, amount: "10.50", cur: "EUR"}
}

func (o order) json() string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":"order.confirmed.v1","occurredAt":"2026-11-29T12:00:00Z",`+
		`"aggregateType":"Order","orderId":%d,"customerId":7,"totalAmount":%s,"currency":%q}`, o.id, o.order, o.amount, o.cur)
}

func (w *world) record(partition int32, value []byte) *kgo.Record {
	return &kgo.Record{Topic: w.topic, Partition: partition, Value: value}
}

// produce writes records and waits until the broker has them.
func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	require.NoError(w.t, w.kafka.ProduceSync(w.t.Context(), records...).FirstErr())
}

// count answers a query for one number.
func (w *world) count(query string, args ...any) (n int64) {
	w.t.Helper()
	require.NoError(w.t, w.db.QueryRow(w.t.Context(), query, args...).Scan(&n), query)
	return n
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(w.t, "not within "+patience.String()+": "+what, w.running())
		}
	}
}

// settled waits until every record is consumed and nothing is unfinished.
func (w *world) settled() {
	w.t.Helper()
	w.eventually("lag 0 and nothing unfinished", func() bool {
		return w.lag() == 0 && w.behind() == 0 && w.count(`SELECT count(*) FROM charge_intent WHERE state NOT IN ('parked', 'held')`) == 0
	})
}

// inEveryStore runs a test with services that keep their positions in Kafka, and in
// the database.
func inEveryStore(t *testing.T, test func(t *testing.T, offsets string)) {
	t.Helper()
	for _, offsets := range []string{"kafka", "postgres"} {
		t.Run("positions in "+offsets, func(t *testing.T) {
			t.Parallel()
			test(t, offsets)
		})
	}
}

// lag is the number of records that the group has not committed; -1 while its
// coordinator does not say.
func (w *world) lag() int64 {
	w.t.Helper()
	total := int64(0)
	committed, err := w.admin.FetchOffsets(w.t.Context(), w.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // not found: nobody has joined yet
		return -1
	}
	ends, err := w.admin.ListEndOffsets(w.t.Context(), w.topic)
	require.NoError(w.t, err)
	ends.Each(func(o kadm.ListedOffset) {
		at := int64(0)
		if c, ok := committed.Lookup(w.topic, o.Partition); ok {
			at = c.At
		}
		total += o.Offset - at
	})
	return total
}

// behind is the number of records before which the positions in the database stand, where
// they are kept there.
func (w *world) behind() (n int64) {
	w.t.Helper()
	if w.offsets == "kafka" {
		require.Zero(w.t, w.count(`SELECT count(*) FROM consumer_offset`), "what is not used is not there")
		return 0
	}
	ends, err := w.admin.ListEndOffsets(w.t.Context(), w.topic)
	require.NoError(w.t, err)
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n - w.count(`SELECT coalesce(sum("offset"), 0) FROM consumer_offset WHERE consumer_group = $1 AND topic = $2`, w.group, w.topic)
}

// get asks the service's admin API.
func (s *service) get(path string, into any) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.Addr+path, http.NoBody)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	if into != nil {
		require.NoError(s.t, json.NewDecoder(resp.Body).Decode(into))
	}
	return resp.StatusCode
}

// scrape returns the metrics as Prometheus reads them.
func (s *service) scrape() string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.Addr+"/metrics", http.NoBody)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return string(body)
}

// stats are the counters that the admin API shows.
type stats struct {
	Received   int64 `json:"received"`
	Processed  int64 `json:"processed"`
	Recovered  int64 `json:"recovered"`
	Duplicates struct {
		Total       int64 `json:"total"`
		Redelivered int64 `json:"redelivered"`
		Republished int64 `json:"republished"`
		Conflicting int64 `json:"conflicting"`
	} `json:"duplicates"`
	Invalid        int64 `json:"invalid"`
	Captured       int64 `json:"captured"`
	Declined       int64 `json:"declined"`
	DuplicateOrder int64 `json:"duplicate_order"`
	Discarded      int64 `json:"discarded"`
	Unfinished     int64 `json:"unfinished"`
	Parked         int64 `json:"parked"`
}

// stats reads the counters and holds them to their identities.
func (s *service) stats() (n stats) {
	s.t.Helper()
	require.Equal(s.t, http.StatusOK, s.get("/api/v1/dedup/stats?window=all", &n))
	require.Equal(s.t, n.Received, n.Processed+n.Duplicates.Total+n.Invalid, "received adds up: %+v", n)
	require.Equal(s.t, n.Duplicates.Total, n.Duplicates.Redelivered+n.Duplicates.Republished+n.Duplicates.Conflicting)
	require.Equal(s.t, n.Processed+n.Recovered, n.Captured+n.Declined+n.DuplicateOrder+n.Discarded+n.Unfinished+n.Parked, "processed adds up: %+v", n)
	return n
}

// lockedBuffer keeps log lines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
