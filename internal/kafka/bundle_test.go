package kafka_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// patience bounds every wait of a test; only a failing test uses it up.
const patience = 60 * time.Second

// testBundle is one topic and one group on the brokers under test, and an independent client.
type testBundle struct {
	brokers []string
	topic   string
	group   string
	admin   *kadm.Client
	client  *kgo.Client
	kept    *positions // nil: Kafka alone keeps them
}

// setup makes a topic of its own for the test.
func setup(tb testing.TB, brokers []string, partitions int32, settings map[string]string) *testBundle {
	tb.Helper()
	name := strings.NewReplacer("/", ".", "_", "-").Replace(tb.Name())
	name = fmt.Sprintf("%.150s-%d", name, time.Now().UnixNano())
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(3<<20), kgo.ProducerLinger(0))
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	b := &testBundle{
		brokers: brokers, topic: name, group: name + ".group", client: client, admin: kadm.NewClient(client),
	}
	values := make(map[string]*string, len(settings))
	for key, value := range settings {
		values[key] = &value
	}
	_, err = b.admin.CreateTopic(tb.Context(), partitions, 1, values, b.topic)
	require.NoError(tb, err)
	return b
}

func (b *testBundle) config() kafka.Config {
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Topic, cfg.GroupID = b.brokers, b.topic, b.group
	cfg.SessionTimeout = sessionTimeout
	cfg.CommitInterval = 20 * time.Millisecond
	if b.kept != nil {
		cfg.Positions = b.kept
	}
	return cfg
}

// produce writes records, as given, and waits for them.
func (b *testBundle) produce(tb testing.TB, records ...*kgo.Record) {
	tb.Helper()
	for _, record := range records {
		record.Topic = b.topic
	}
	require.NoError(tb, b.client.ProduceSync(tb.Context(), records...).FirstErr())
}

// fill writes n numbered records into a partition: values "from", "from+1" and so on.
func (b *testBundle) fill(tb testing.TB, partition int32, from, n int) {
	tb.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Partition: partition, Value: []byte(strconv.Itoa(from + i))}
	}
	b.produce(tb, records...)
}

// committed returns the group's committed offsets.
func (b *testBundle) committed(tb testing.TB) map[int32]int64 {
	tb.Helper()
	found, err := b.admin.FetchOffsets(tb.Context(), b.group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil // no member has joined it yet
	}
	require.NoError(tb, err)
	offsets := map[int32]int64{}
	found.Each(func(o kadm.OffsetResponse) { offsets[o.Partition] = o.At })
	return offsets
}

// awaitCommitted waits until the group has committed exactly these offsets.
func (b *testBundle) awaitCommitted(tb testing.TB, want map[int32]int64) {
	tb.Helper()
	require.EventuallyWithT(tb, func(collect *assert.CollectT) {
		assert.Equal(collect, want, b.committed(tb))
	}, patience, 20*time.Millisecond)
}

// running is a consumer that runs until the test ends or stops it.
type running struct {
	*kafka.Consumer
	end  context.CancelFunc
	done chan struct{} // closed when Run has returned
	err  error         // what it returned
}

func start(tb testing.TB, cfg kafka.Config, biller kafka.Biller) *running {
	tb.Helper()
	return startObserved(tb, cfg, biller, kafka.Telemetry{})
}

func startObserved(tb testing.TB, cfg kafka.Config, biller kafka.Biller, to kafka.Telemetry) *running {
	tb.Helper()
	if book, ok := biller.(*ledger); ok && cfg.Positions != nil && book.kept == nil {
		book.kept, _ = cfg.Positions.(*positions)
	}
	consumer, err := kafka.New(cfg, biller, testLogger(tb), to, domain.SystemClock{})
	require.NoError(tb, err)
	ctx, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	r := &running{Consumer: consumer, end: end, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = consumer.Run(ctx)
	}()
	tb.Cleanup(func() {
		if tb.Failed() {
			tellGroup(tb, cfg)
		}
		end()
		<-r.done // bounded by Run itself
	})
	return r
}

// stop ends the consumer and returns what Run returned.
func (r *running) stop(tb testing.TB) error {
	tb.Helper()
	r.end()
	return r.wait(tb)
}

// wait returns what Run returned.
func (r *running) wait(tb testing.TB) error {
	tb.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(patience):
		require.FailNow(tb, "Run has not returned")
		return nil
	}
}

// await waits until the consumer's status satisfies ok.
func (r *running) await(tb testing.TB, what string, ok func(kafka.Status) bool) kafka.Status {
	tb.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last := r.Status()
		if ok(last) {
			return last
		}
		select {
		case <-tick.C:
		case <-limit:
			require.FailNowf(tb, "has not come about", "%s; the status is %+v", what, last)
		}
	}
}

// ledger is a Biller that writes down what it made durable. Every consumer of a
// test may share it, as instances share a database.
type ledger struct {
	// before runs ahead of every batch; its error fails the batch.
	before func(ctx context.Context, records []domain.Record) error

	*domain.Biller            // for its Keys; numbered values have none
	kept           *positions // where the position goes with the records; nil: nowhere

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	durable map[int32][]domain.Record
	batches [][]domain.Record
	flying  map[domain.Key]int // batches in flight with the event or order
	clash   bool               // two of them at a time
}

func newLedger(before func(context.Context, []domain.Record) error) *ledger {
	clock, log := domain.SystemClock{}, slog.New(slog.DiscardHandler)
	return &ledger{
		before:  before,
		Biller:  domain.NewBiller(domain.Policy{}, domain.Decoder{}, nil, nil, domain.NewGate(clock), clock, log),
		changed: make(chan struct{}), durable: map[int32][]domain.Record{}, flying: map[domain.Key]int{},
	}
}

func (l *ledger) Admit(ctx context.Context) (domain.Pass, error) { return domain.Pass{}, ctx.Err() }

func (l *ledger) Bill(ctx context.Context, pass domain.Pass, records []domain.Record) error {
	if !slices.IsSortedFunc(records, func(a, b domain.Record) int { return cmp.Compare(a.Offset, b.Offset) }) {
		return errors.New("the records of a batch are not in their order")
	}
	l.fly(records, 1)
	defer l.fly(records, -1)
	if l.before != nil {
		if err := l.before(ctx, records); err != nil {
			return err
		}
	}
	at, kept, err := pass.Position(ctx, records)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept { // in one transaction with the records
		if err := l.kept.Move(ctx, at); err != nil {
			return err
		}
	}
	l.durable[records[0].Partition] = append(l.durable[records[0].Partition], records...)
	l.batches = append(l.batches, records)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// fly counts the batches in flight by the events and orders in them.
func (l *ledger) fly(records []domain.Record, batches int) {
	keys := map[domain.Key]bool{}
	for i := range records {
		if event, order, valid := l.Keys(&records[i]); valid {
			keys[event], keys[order] = true, true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range keys {
		l.flying[key] += batches
		l.clash = l.clash || l.flying[key] > 1
	}
}

// await waits until n different records are durable.
func (l *ledger) await(tb testing.TB, n int) {
	tb.Helper()
	l.awaitThat(tb, fmt.Sprintf("%d records", n), func() bool { return l.distinct() >= n })
}

// awaitThat waits until ok, which is asked after every change, with the lock held.
func (l *ledger) awaitThat(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	limit := time.After(patience)
	for {
		l.mu.Lock()
		reached, changed, have := ok(), l.changed, l.distinct()
		l.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-changed:
		case <-limit:
			require.FailNowf(tb, "not durable in time", "%s; have %d", what, have)
		}
	}
}

func (l *ledger) distinct() int {
	n := 0
	for _, records := range l.durable {
		seen := map[int64]bool{}
		for _, record := range records {
			seen[record.Offset] = true
		}
		n += len(seen)
	}
	return n
}

// values returns what became durable in a partition, by offset: batches end in any order.
func (l *ledger) values(partition int32) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	values := make([]string, len(l.durable[partition]))
	byOffset := slices.SortedStableFunc(slices.Values(l.durable[partition]), func(a, b domain.Record) int {
		return cmp.Compare(a.Offset, b.Offset)
	})
	for i, record := range byOffset {
		values[i] = string(record.Value)
	}
	return values
}

// missingBelow returns the offsets below the committed ones that are not durable.
func (l *ledger) missingBelow(committed map[int32]int64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []string
	for _, partition := range slices.Sorted(maps.Keys(committed)) {
		have := map[int64]bool{}
		for _, record := range l.durable[partition] {
			have[record.Offset] = true
		}
		for offset := range committed[partition] {
			if !have[offset] {
				missing = append(missing, fmt.Sprintf("%d@%d", partition, offset))
			}
		}
	}
	return missing
}

// numbered returns "from", "from+1" and so on, as fill writes them.
func numbered(from, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = strconv.Itoa(from + i)
	}
	return values
}

// testLogger is silent unless the test is verbose, or fails.
func testLogger(tb testing.TB) *slog.Logger {
	tb.Helper()
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("test", tb.Name())
	}
	lines := &logLines{}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log("what was logged:\n" + lines.String())
		}
	})
	return slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// logLines keeps what is logged. Whoever outlives the test may still write.
type logLines struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// tellGroup says how the group stands, for a test that has failed: who does not get his records may have to wait for
// a member that nobody thinks of.
func tellGroup(tb testing.TB, cfg kafka.Config) {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 5*time.Second)
	defer cancel()
	groups, err := kadm.NewClient(client).DescribeGroups(ctx, cfg.GroupID)
	if err != nil {
		tb.Logf("the group does not tell how it stands: %v", err)
	}
	for _, group := range groups.Sorted() {
		tb.Logf("group %s is %s, error %v", group.Group, group.State, group.Err)
		for _, m := range group.Members {
			tb.Logf("member %s at %s", m.MemberID, m.ClientHost)
		}
	}
}
