package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// shelf is an outbox in memory. Any number of relays may share it; whoever asks
// first leads, until it resigns or an error takes its place away.
type shelf struct {
	mu      sync.Mutex
	rows    []domain.Outgoing
	done    int // published or refused
	refused []domain.Refusal
	leader  *seat
	moves   int
	failing func(move int) error // asked before a cursor moves
}

// seat is a relay's place at the shelf.
type seat struct{ *shelf }

var errNotLeading = errors.New("not leading")

func (s *shelf) add(messages ...domain.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.rows = append(s.rows, domain.Outgoing{
			Position: domain.OutboxPosition{Transaction: 7, ID: int64(len(s.rows) + 1)}, CreatedAt: time.Now(), Message: m,
		})
	}
}

func (s *shelf) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows) - s.done
}

func (s *shelf) leads() *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

func (t *seat) Lead(context.Context) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leader == nil {
		t.leader = t
	}
	return t.leader == t, nil
}

func (t *seat) Next(context.Context) ([]domain.Outgoing, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leader != t {
		return nil, errNotLeading
	}
	return slices.Clone(t.rows[t.done:min(len(t.rows), t.done+10)]), nil
}

func (t *seat) Move(_ context.Context, batch []domain.Outgoing, refused []domain.Refusal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moves++
	if t.failing != nil {
		if err := t.failing(t.moves); err != nil {
			t.leader = nil
			return err
		}
	}
	if t.leader != t || t.rows[t.done].Position != batch[0].Position {
		return errNotLeading
	}
	t.done += len(batch)
	t.refused = append(t.refused, refused...)
	return nil
}

func (t *seat) Backlog(context.Context) (domain.Backlog, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := domain.Backlog{Rows: len(t.rows) - t.done, Refused: len(t.refused)}
	if b.Rows > 0 {
		b.Oldest = t.rows[t.done].CreatedAt
	}
	return b, nil
}

func (*seat) Prune(context.Context, time.Duration) (int, error) { return 0, nil }

func (t *seat) Resign() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leader == t {
		t.leader = nil
	}
	return nil
}

// relaying is a relay that runs until the test ends or stops it.
type relaying struct {
	*kafka.Relay
	seat *seat
	end  context.CancelFunc
	done chan struct{}
}

func (r *relaying) stop(tb testing.TB) {
	tb.Helper()
	r.end()
	select {
	case <-r.done:
	case <-time.After(patience):
		require.FailNow(tb, "the relay does not end")
	}
}

// relay runs a relay whose events go to the bundle's topic, and its letters to another.
func (b *testBundle) relay(tb testing.TB, s *shelf, change ...func(*kafka.RelayConfig)) *relaying {
	tb.Helper()
	cfg := kafka.DefaultRelayConfig()
	cfg.Topics = map[domain.MessageKind]string{domain.EventMessage: b.topic, domain.LetterMessage: b.letters(tb)}
	cfg.Poll = 5 * time.Millisecond
	for _, c := range change {
		c(&cfg)
	}
	return b.relayOf(tb, b.config(), s, cfg)
}

// relayOf runs a relay with these settings.
func (b *testBundle) relayOf(tb testing.TB, client kafka.Config, s *shelf, cfg kafka.RelayConfig) *relaying {
	tb.Helper()
	place := &seat{s}
	relay, err := kafka.NewRelay(client, cfg, place, testLogger(tb), kafka.Telemetry{}, domain.SystemClock{})
	require.NoError(tb, err)
	ctx, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	r := &relaying{Relay: relay, seat: place, end: end, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		relay.Run(ctx)
	}()
	tb.Cleanup(func() { r.stop(tb) })
	return r
}

// letters returns the name of a second topic, which it makes.
func (b *testBundle) letters(tb testing.TB) string {
	tb.Helper()
	name := b.topic + ".dlq"
	size := "20000"
	created, err := b.admin.CreateTopics(tb.Context(), 1, 1, map[string]*string{"max.message.bytes": &size}, name)
	require.NoError(tb, err)
	_ = created[name].Err // an earlier relay of the test has made it, perhaps
	return name
}

// published reads n records of a topic.
func (b *testBundle) published(tb testing.TB, topic string, n int) []*kgo.Record {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(tb, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(tb, fetches.Err(), "%d of %d records", len(records), n)
		records = append(records, fetches.Records()...)
	}
	return records
}

func event(n int) domain.Message {
	return domain.Message{Kind: domain.EventMessage, Key: []byte("k"), Value: []byte(strconv.Itoa(n))}
}

func events(from, n int) []domain.Message {
	messages := make([]domain.Message, n)
	for i := range messages {
		messages[i] = event(from + i)
	}
	return messages
}

func valuesOf(records []*kgo.Record) []string {
	values := make([]string, len(records))
	for i, r := range records {
		values[i] = string(r.Value)
	}
	return values
}

func (s *shelf) awaitEmpty(tb testing.TB) {
	tb.Helper()
	require.Eventually(tb, func() bool { return s.left() == 0 }, patience, 2*time.Millisecond)
}

func TestWhatIsAppendedIsPublishedAsItIsAndInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 3, nil)
	s := &shelf{}
	s.add(events(0, 25)...)
	headers := []domain.Header{{Key: "a", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "b", Value: []byte{0xff, 0}}}
	s.add(
		domain.Message{Kind: domain.LetterMessage, Headers: headers},
		domain.Message{Kind: domain.LetterMessage, Key: []byte{}, Value: []byte{}},
	)
	r := b.relay(t, s)
	s.awaitEmpty(t)
	r.stop(t)

	got := b.published(t, b.topic, 25)
	require.Equal(t, numbered(0, 25), valuesOf(got), "the messages of one key are in order")
	partitioner := kgo.StickyKeyPartitioner(nil).ForTopic(b.topic)
	for _, record := range got {
		require.EqualValues(t, partitioner.Partition(record, 3), record.Partition, "where the Java client would put it")
	}
	letters := b.published(t, b.topic+".dlq", 2)
	require.Nil(t, letters[0].Value)
	require.Nil(t, letters[0].Key)
	require.Equal(t, []kgo.RecordHeader{{Key: "a", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "b", Value: []byte{0xff, 0}}}, letters[0].Headers)
	require.NotNil(t, letters[1].Value)
	require.NotNil(t, letters[1].Key)
	require.Empty(t, s.refused)
}

func TestAMessageThatIsTooLargeIsMarkedAndItsNeighboursGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	letter := func(size int) domain.Message {
		return domain.Message{Kind: domain.LetterMessage, Value: bytes.Repeat([]byte("x"), size)}
	}
	// Together the small ones are too large for one request to this topic, too.
	s.add(letter(9000), letter(9001), letter(21000), letter(9002), event(1))
	s.add(event(2), letter(9003))
	b.relay(t, s)
	s.awaitEmpty(t)
	var sizes []int
	for _, r := range b.published(t, b.topic+".dlq", 4) {
		sizes = append(sizes, len(r.Value))
	}
	slices.Sort(sizes)
	require.Equal(t, []int{9000, 9001, 9002, 9003}, slices.Compact(sizes))
	require.Equal(t, []string{"1", "2"}, valuesOf(b.published(t, b.topic, 2)))
	require.Len(t, s.refused, 1)
	require.EqualValues(t, 3, s.refused[0].Position.ID)
	require.Equal(t, b.topic+".dlq", s.refused[0].Topic)
	require.Contains(t, s.refused[0].Reason, "size")
}

func TestAKindWithoutATopicIsPassedOver(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	s.add(domain.Message{Kind: domain.LetterMessage, Value: []byte("x")}, event(1))
	b.relay(t, s, func(c *kafka.RelayConfig) { delete(c.Topics, domain.LetterMessage) })
	s.awaitEmpty(t)
	require.Equal(t, []string{"1"}, valuesOf(b.published(t, b.topic, 1)))
	require.Empty(t, s.refused)
}

func TestARelayThatDiesBeforeItsCursorMovesRepeatsAndSkipsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	s.add(events(0, 30)...)
	s.failing = func(move int) error {
		if move == 2 || move == 4 { // it is published, and nobody has written that down
			return errors.New("killed")
		}
		return nil
	}
	first, second := b.relay(t, s), b.relay(t, s)
	s.awaitEmpty(t)
	first.stop(t)
	second.stop(t)
	records := b.published(t, b.topic, 50)
	seen := map[string]int{}
	for _, value := range valuesOf(records) {
		seen[value]++
	}
	require.ElementsMatch(t, numbered(0, 30), slices.Collect(maps.Keys(seen)))
	require.Len(t, records, 50, "the two batches came twice, and nothing else did")
}

func TestOneRelayLeadsAndAnotherFollowsIt(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	one, two := b.relay(t, s), b.relay(t, s)
	byPlace := map[*seat]*relaying{one.seat: one, two.seat: two}
	require.Eventually(t, func() bool { return s.leads() != nil }, patience, time.Millisecond)
	leader := byPlace[s.leads()]
	s.add(events(0, 5)...)
	s.awaitEmpty(t)
	require.Eventually(t, func() bool {
		return leader.Status().Leading && one.Status().Leading != two.Status().Leading
	}, patience, time.Millisecond)
	leader.stop(t)
	require.False(t, leader.Status().Running)
	s.add(events(5, 5)...)
	s.awaitEmpty(t)
	require.NotSame(t, leader, byPlace[s.leads()])
	require.Equal(t, numbered(0, 10), valuesOf(b.published(t, b.topic, 10)))
}

func TestARelayThatIsToldToEndPublishesWhatIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	r := b.relay(t, s, func(c *kafka.RelayConfig) { c.Poll = time.Hour; c.Drain = patience })
	require.Eventually(t, func() bool { return !r.Status().LastTurn.IsZero() }, patience, time.Millisecond)
	s.add(events(0, 95)...) // while it rests
	r.stop(t)
	require.Zero(t, s.left())
	require.Nil(t, s.leads())
	require.Equal(t, numbered(0, 95), valuesOf(b.published(t, b.topic, 95)))
}

func TestAWrongRelayIsRefused(t *testing.T) {
	t.Parallel()
	cfg := kafka.DefaultRelayConfig()
	cfg.Topics, cfg.Keep = map[domain.MessageKind]string{domain.EventMessage: "no topic"}, 0
	_, err := kafka.NewRelay(kafka.Config{}, cfg, &seat{&shelf{}}, testLogger(t), kafka.Telemetry{}, domain.SystemClock{})
	require.ErrorContains(t, err, `"no topic"`)
	require.ErrorContains(t, err, "not positive")
}
