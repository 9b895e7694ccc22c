package kafka_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// The tests of this file hold on every broker, as those of conformance_test.go do.

// awaitKept waits until the book holds exactly these positions.
func (b *testBundle) awaitKept(tb testing.TB, want map[int32]int64) {
	tb.Helper()
	require.EventuallyWithT(tb, func(collect *assert.CollectT) {
		assert.Equal(collect, want, b.kept.offsets())
	}, patience, 20*time.Millisecond)
}

// commit sets the group's offsets in Kafka, as a tool would.
func (b *testBundle) commit(tb testing.TB, to map[int32]int64) {
	tb.Helper()
	offsets := kadm.Offsets{}
	for partition, at := range to {
		offsets.AddOffset(b.topic, partition, at, -1)
	}
	require.NoError(tb, b.admin.CommitAllOffsets(tb.Context(), b.group, offsets))
}

func TestPositionsInTheBookSurviveTheDeletionOfTheGroup(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 2, nil)
	b.fill(t, 0, 0, 100)
	b.fill(t, 1, 0, 60)
	book := newLedger(nil)
	first := start(t, b.config(), book)
	book.await(t, 160)
	b.awaitCommitted(t, map[int32]int64{0: 100, 1: 60})
	require.NoError(t, first.stop(t))
	b.awaitKept(t, map[int32]int64{0: 100, 1: 60})

	deleted, err := b.admin.DeleteGroups(t.Context(), b.group)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	require.Empty(t, b.committed(t))
	b.fill(t, 0, 100, 50)
	rest := newLedger(nil)
	second := start(t, b.config(), rest)
	rest.await(t, 50)
	b.awaitCommitted(t, map[int32]int64{0: 150, 1: 60})
	require.NoError(t, second.stop(t))
	require.Equal(t, numbered(100, 50), rest.values(0), "no record from before the position")
	require.Empty(t, rest.values(1))
}

func TestTheBookWinsOverTheGroupsOffsets(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 3, nil)
	for partition := range int32(3) {
		b.fill(t, partition, 0, 100)
	}
	// As after a kill between the two commits, as after a commit by hand, and as of a group
	// that has never kept its positions in the book.
	b.commit(t, map[int32]int64{0: 20, 1: 90, 2: 30})
	b.kept.set(b.group, b.topic, map[int32]int64{0: 40, 1: 40})
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 60+60+70)
	all := map[int32]int64{0: 100, 1: 100, 2: 100}
	b.awaitKept(t, all)
	b.awaitCommitted(t, all)
	require.NoError(t, r.stop(t))
	require.Equal(t, numbered(40, 60), book.values(0), "nothing from before the book's position comes again")
	require.Equal(t, numbered(40, 60), book.values(1), "nothing behind it is skipped")
	require.Equal(t, numbered(30, 70), book.values(2), "without a position in the book, the group's counts")
}

func TestAPositionOutsideOfTheLogIsSetToItsFirstRecord(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 2, nil)
	b.fill(t, 0, 0, 50)
	b.fill(t, 1, 0, 50)
	removed := kadm.Offsets{}
	removed.AddOffset(b.topic, 0, 30, -1)
	deleted, err := b.admin.DeleteRecords(t.Context(), removed)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	b.kept.set(b.group, b.topic, map[int32]int64{0: 10, 1: 5000})
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 20+50)
	require.Equal(t, numbered(30, 20), book.values(0), "10 to 29 are gone")
	require.Equal(t, numbered(0, 50), book.values(1), "the log was cut back: nothing of it is skipped")
	b.awaitKept(t, map[int32]int64{0: 50, 1: 50})
	require.NoError(t, r.stop(t))
	require.Equal(t, 2, b.kept.back, "both were set before a record was read, not left to the client")
}

func TestControlRecordsAtTheEndDoNotStallThePositionInTheBook(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 1, nil)
	producer, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group),
		kgo.DefaultProduceTopic(b.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	for value, end := range map[string]kgo.TransactionEndTry{"a": kgo.TryCommit, "x": kgo.TryAbort} {
		require.NoError(t, producer.BeginTransaction())
		require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr())
		require.NoError(t, producer.EndTransaction(t.Context(), end))
	}
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 1)
	b.awaitKept(t, map[int32]int64{0: 4}) // two records and two control records
	require.NoError(t, r.stop(t))
	require.Equal(t, []string{"a"}, book.values(0))
}

func TestABatchOfAnEarlierEpochStandsNowhereAndItsRecordsGoOn(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 1, nil)
	b.fill(t, 0, 0, 20)
	begun, release := make(chan struct{}, 100), make(chan struct{})
	book := newLedger(func(context.Context, []domain.Record) error {
		begun <- struct{}{}
		<-release
		return nil
	})
	r := start(t, b.config(), book)
	<-begun
	_, err := b.kept.Take(t.Context(), b.group, b.topic, 0) // somebody else, who is gone again
	require.NoError(t, err)
	close(release)
	r.await(t, "the fenced lane has ended, and the partition is taken anew", func(kafka.Status) bool {
		b.kept.mu.Lock()
		defer b.kept.mu.Unlock()
		return b.kept.took == 3
	})
	book.await(t, 20)
	require.Equal(t, numbered(0, 20), book.values(0), "each once: what was fenced left nothing")
	b.awaitKept(t, map[int32]int64{0: 20})
	b.fill(t, 0, 20, 5)
	book.await(t, 25)
	b.awaitCommitted(t, map[int32]int64{0: 25})
	require.NoError(t, r.stop(t))
}

func TestAPartitionWaitsForItsPositionWhileTheBookIsAway(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 2, nil)
	b.fill(t, 0, 0, 30)
	b.fill(t, 1, 0, 30)
	b.kept.set(b.group, b.topic, map[int32]int64{0: 10, 1: 10})
	b.kept.leave(true)
	var early atomic.Bool
	early.Store(true)
	book := newLedger(func(context.Context, []domain.Record) error {
		if early.Load() {
			t.Error("a batch began before its position was known")
		}
		return nil
	})
	r := start(t, b.config(), book)
	status := r.await(t, "both wait", func(s kafka.Status) bool {
		return len(s.Partitions) == 2 && s.Partitions[0].Failures > 1 && s.Partitions[1].Failures > 1
	})
	require.Equal(t, kafka.Restoring, status.Partitions[0].State)
	require.Equal(t, errAway.Error(), status.Partitions[0].LastError)
	require.NoError(t, r.Check(t.Context()), "the member is alive meanwhile")

	// A member that joins takes over one of them: what is not begun is given back all the same.
	second := start(t, b.config(), book)
	second.await(t, "the second has its share", func(s kafka.Status) bool { return len(s.Partitions) == 1 })
	r.await(t, "the first has given it", func(s kafka.Status) bool { return len(s.Partitions) == 1 })
	early.Store(false)
	b.kept.leave(false)
	book.await(t, 40)
	require.Equal(t, numbered(10, 20), book.values(0))
	require.Equal(t, numbered(10, 20), book.values(1))
	b.awaitKept(t, map[int32]int64{0: 30, 1: 30})
	require.NoError(t, r.stop(t))
	require.NoError(t, second.stop(t))
}

func TestAMemberThatEndsWhileTheBookIsAwayLeavesInPeace(t *testing.T) {
	t.Parallel()
	b := setupKeeping(t, inMemory, brokersUnderTest(t), 2, nil)
	b.kept.leave(true)
	r := start(t, b.config(), newLedger(nil))
	r.await(t, "waiting", func(s kafka.Status) bool { return len(s.Partitions) == 2 && s.Partitions[1].Failures > 0 })
	require.NoError(t, r.stop(t))
	require.Empty(t, r.Status().Partitions)
}
