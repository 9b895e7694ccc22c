package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// The tests of this file hold on every broker: the embedded one by default, Apache
// Kafka under the build tag apache.

func TestEveryRecordIsHandedOverInOrderAndCommitted(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 6, nil)
		want := map[int32]int64{}
		for partition := range int32(6) {
			b.fill(t, partition, 0, 500)
			want[partition] = 500
		}
		book := newLedger(nil)
		r := start(t, b.config(), book)
		book.await(t, 3000)
		b.awaitCommitted(t, want)
		for partition := range int32(6) {
			require.Equal(t, numbered(0, 500), book.values(partition))
		}
		status := r.await(t, "lag 0 everywhere", func(s kafka.Status) bool {
			return len(s.Partitions) == 6 && !slices.ContainsFunc(s.Partitions, func(p kafka.PartitionStatus) bool {
				return p.Lag != 0 || p.Committed != 500 || p.State != kafka.Idle
			})
		})
		require.True(t, status.Running)
		require.NoError(t, r.stop(t))
		require.False(t, r.Status().Running)
		require.Empty(t, r.Status().Partitions)
	})
}

func TestARecordArrivesAsItWasWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	at := time.UnixMilli(time.Now().UnixMilli())
	b.produce(t,
		&kgo.Record{Key: []byte("7"), Value: []byte("v"), Timestamp: at, Headers: []kgo.RecordHeader{
			{Key: "a", Value: nil},
			{Key: "b", Value: []byte{}},
			{Key: "a", Value: []byte{0xff, 0}},
		}},
		&kgo.Record{},
		&kgo.Record{Key: []byte{}, Value: []byte{}},
	)
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 3)
	require.NoError(t, r.stop(t))

	got := book.durable[0]
	require.Equal(t, domain.Coordinates{Topic: b.topic, Partition: 0, Offset: 0}, got[0].Coordinates)
	require.Equal(t, []byte("7"), got[0].Key)
	require.True(t, at.Equal(got[0].Timestamp))
	require.Equal(t, []domain.Header{
		{Key: "a", Value: nil},
		{Key: "b", Value: []byte{}},
		{Key: "a", Value: []byte{0xff, 0}},
	}, got[0].Headers)
	require.Nil(t, got[1].Key)
	require.Nil(t, got[1].Value, "a tombstone stays one")
	require.Nil(t, got[1].Headers)
	require.NotNil(t, got[2].Key)
	require.NotNil(t, got[2].Value, "an empty value is no tombstone")
}

func TestAValueOverTheBoundIsDeliveredWhole(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, map[string]string{"max.message.bytes": "4000000"})
	large := strings.Repeat("x", 5<<19) // 2.5 MiB
	b.produce(t, &kgo.Record{Value: []byte("before")}, &kgo.Record{Value: []byte(large)})
	b.produce(t, &kgo.Record{Value: []byte(large)}, &kgo.Record{Value: []byte("after")})
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 4)
	require.Equal(t, []string{"before", large, large, "after"}, book.values(0))
	require.NoError(t, r.stop(t))
}

func TestABlockedPartitionIsPausedAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 3, nil)
		for partition := range int32(3) {
			b.fill(t, partition, 0, 300)
		}
		release := make(chan struct{})
		book := newLedger(func(_ context.Context, records []domain.Record) error {
			if records[0].Partition == 1 {
				<-release
			}
			return nil
		})
		cfg := b.config()
		cfg.BatchMax, cfg.LaneRecords = 4, 40
		r := start(t, cfg, book)
		book.await(t, 600)
		status := r.await(t, "partition 1 paused", func(s kafka.Status) bool { return s.Partitions[1].Paused != "" })
		require.Equal(t, kafka.PausedQueueFull, status.Partitions[1].Paused)
		require.Equal(t, 40, status.Partitions[1].Queued, "no more than its bound waits")
		require.LessOrEqual(t, status.Partitions[1].InFlight, 4*status.Partitions[1].Batches)
		require.NotZero(t, status.Partitions[1].InFlight)
		require.EqualValues(t, 0, status.Partitions[1].Done)
		r.await(t, "lag tells what a paused partition holds back", func(s kafka.Status) bool {
			return s.Partitions[1].Lag == 300 && s.Partitions[0].Lag == 0 && s.Partitions[2].Lag == 0
		})

		require.Eventually(t, func() bool { at := b.committed(t); return at[0] == 300 && at[2] == 300 }, patience, 20*time.Millisecond)
		require.NotContains(t, b.committed(t), int32(1), "what was only handed out is not committed with its neighbours")

		// What arrives while it is paused is not fetched, but seen.
		b.fill(t, 1, 300, 50)
		r.await(t, "lag grows", func(s kafka.Status) bool { return s.Partitions[1].Lag == 350 })

		close(release)
		book.await(t, 950)
		require.Equal(t, numbered(0, 350), book.values(1))
		b.awaitCommitted(t, map[int32]int64{0: 300, 1: 350, 2: 300})
		require.NoError(t, r.stop(t))
	})
}

func TestBytesPauseAPartitionToo(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 1, nil)
		for i := range 40 {
			b.produce(t, &kgo.Record{Value: []byte(strings.Repeat(string(rune('a'+i%26)), 1000))})
		}
		release := make(chan struct{})
		book := newLedger(func(context.Context, []domain.Record) error { <-release; return nil })
		cfg := b.config()
		cfg.LaneBytes = 5000
		r := start(t, cfg, book)
		status := r.await(t, "paused", func(s kafka.Status) bool {
			return len(s.Partitions) == 1 && s.Partitions[0].Paused != ""
		})
		require.Equal(t, 5, status.Partitions[0].Queued)
		require.Equal(t, 5000, status.Partitions[0].QueuedBytes)
		close(release)
		book.await(t, 40)
		require.NoError(t, r.stop(t))
	})
}

func TestPausingAgainAndAgainNeitherLosesNorRepeats(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 2, nil)
		b.fill(t, 0, 0, 2000)
		b.fill(t, 1, 0, 2000)
		book := newLedger(nil)
		cfg := b.config()
		cfg.BatchMax, cfg.LaneRecords = 3, 100
		r := start(t, cfg, book)
		book.await(t, 4000)
		require.Equal(t, numbered(0, 2000), book.values(0))
		require.Equal(t, numbered(0, 2000), book.values(1))
		require.NoError(t, r.stop(t))
		require.Equal(t, map[int32]int64{0: 2000, 1: 2000}, b.committed(t))
	})
}

func TestAFailingBatchIsRunAgainAndNotCommitted(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 1, nil)
		b.fill(t, 0, 0, 10)
		var mu sync.Mutex
		failures := 0
		committed := make(chan map[int32]int64, 1)
		book := newLedger(func(_ context.Context, records []domain.Record) error {
			if records[0].Offset > 0 {
				return nil // those behind it may go on
			}
			mu.Lock()
			defer mu.Unlock()
			if failures == 4 {
				return nil
			}
			if failures++; failures == 4 {
				committed <- b.committed(t)
			}
			return errors.New("the database is away")
		})
		r := start(t, b.config(), book)
		require.Empty(t, <-committed, "nothing is committed while the first batch fails")
		book.await(t, 10)
		require.Equal(t, numbered(0, 10), book.values(0))
		b.awaitCommitted(t, map[int32]int64{0: 10})
		require.NoError(t, r.stop(t))
	})
}

func TestNoEventOrOrderIsInTwoBatchesAtATime(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 3, nil)
		// Few orders, each confirmed over and over in all partitions, by the same events and others.
		const perPartition, orders = 300, 12
		var records []*kgo.Record
		for i := range 3 * perPartition {
			records = append(records, &kgo.Record{Partition: int32(i % 3), Value: confirmed(i%40, 1+(i/7)%orders)})
		}
		b.produce(t, records...)
		var inFlight, beside, tried atomic.Int64
		book := newLedger(func(context.Context, []domain.Record) error {
			defer inFlight.Add(-1)
			if inFlight.Add(1) > 1 {
				beside.Add(1)
			}
			time.Sleep(2 * time.Millisecond) // the calls
			if tried.Add(1)%10 == 0 {
				return errors.New("deadlock")
			}
			return nil
		})
		cfg := b.config()
		cfg.BatchMax = 4
		r := start(t, cfg, book)
		book.await(t, 3*perPartition)
		b.awaitCommitted(t, map[int32]int64{0: perPartition, 1: perPartition, 2: perPartition})
		require.NoError(t, r.stop(t))
		require.False(t, book.clash, "an event or order in two batches at a time")
		require.NotZero(t, beside.Load(), "or there was nothing to see")
		for partition := range int32(3) {
			require.Len(t, book.durable[partition], perPartition, "nothing is billed twice")
		}
	})
}

// confirmed returns the value of an event of that number that confirms that order.
func confirmed(event, order int) []byte {
	return fmt.Appendf(nil, `{"eventId":"0198f3a1-5b6c-7d8e-9f01-%012x","eventType":"order.confirmed.v1",`+
		`"occurredAt":"2026-01-02T03:04:05Z","aggregateType":"Order","orderId":%d,"customerId":7,`+
		`"totalAmount":10.50,"currency":"EUR"}`, event, order)
}

func TestAFailureOfOnePartitionHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 2, nil)
		b.fill(t, 0, 0, 50)
		b.fill(t, 1, 0, 50)
		book := newLedger(func(_ context.Context, records []domain.Record) error {
			if records[0].Partition == 0 {
				return errors.New("refused")
			}
			return nil
		})
		cfg := b.config()
		cfg.MaxTransactions = 1 // a lane that pauses must not keep the only slot
		r := start(t, cfg, book)
		book.await(t, 50)
		b.awaitCommitted(t, map[int32]int64{1: 50})
		status := r.await(t, "the failure shows", func(s kafka.Status) bool { return s.Partitions[0].Failures > 1 })
		require.Equal(t, "refused", status.Partitions[0].LastError)
		require.EqualValues(t, 0, status.Partitions[0].Done)
		require.NoError(t, r.stop(t))
	})
}

func TestAStopDrainsTheRunningBatchAndCommitsIt(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 1, nil)
		b.fill(t, 0, 0, 20)
		began, release := make(chan context.Context, 20), make(chan struct{})
		book := newLedger(func(ctx context.Context, _ []domain.Record) error {
			began <- ctx
			<-release
			return nil
		})
		cfg := b.config()
		cfg.BatchMax, cfg.MaxTransactions = 4, 3
		r := start(t, cfg, book)
		r.await(t, "everything is queued, and some of it in flight", func(s kafka.Status) bool {
			return len(s.Partitions) == 1 && s.Partitions[0].Queued == 20 && s.Partitions[0].Batches == 3
		})
		r.end()
		r.await(t, "draining", func(s kafka.Status) bool { return !s.Running })
		for range 3 {
			require.NoError(t, (<-began).Err(), "a batch in flight may finish")
		}
		close(release)
		require.NoError(t, r.wait(t))
		require.Len(t, book.batches, 3, "no further batch is taken")
		n := len(book.durable[0])
		require.LessOrEqual(t, n, 12)
		require.Equal(t, map[int32]int64{0: int64(n)}, b.committed(t), "what was in flight is committed, what waited is not")

		rest := newLedger(nil)
		again := start(t, b.config(), rest)
		rest.await(t, 20-n)
		require.Equal(t, numbered(n, 20-n), rest.values(0), "the next owner goes on right there")
		require.NoError(t, again.stop(t))
	})
}

func TestARevocationWaitsForAllBatchesInFlight(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 2, nil)
		b.fill(t, 0, 0, 40)
		b.fill(t, 1, 0, 40)
		release := make(chan struct{})
		book := newLedger(func(context.Context, []domain.Record) error { <-release; return nil })
		cfg := b.config()
		cfg.BatchMax, cfg.MaxTransactions = 4, 16
		first := start(t, cfg, book)
		first.await(t, "several in flight", func(s kafka.Status) bool {
			return len(s.Partitions) == 2 && s.Partitions[0].Batches == 8 && s.Partitions[1].Batches == 8
		})
		second := start(t, cfg, book)
		first.await(t, "a partition is being given back", func(s kafka.Status) bool { return s.Leaving == 1 })
		require.Empty(t, second.Status().Partitions, "not before its batches have ended")
		require.Empty(t, b.committed(t))
		close(release)
		second.await(t, "the second one has its share", func(s kafka.Status) bool { return len(s.Partitions) == 1 })
		book.await(t, 80)
		b.awaitCommitted(t, map[int32]int64{0: 40, 1: 40})
		require.Equal(t, numbered(0, 40), book.values(0), "each once: what was in flight was committed with the partition")
		require.Equal(t, numbered(0, 40), book.values(1))
		require.NoError(t, first.stop(t))
		require.NoError(t, second.stop(t))
	})
}

func TestABatchThatDoesNotEndIsReportedAndNotCommitted(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 1, nil)
		b.fill(t, 0, 0, 5)
		began, release := make(chan context.Context, 5), make(chan struct{})
		t.Cleanup(func() { close(release) })
		book := newLedger(func(ctx context.Context, _ []domain.Record) error {
			began <- ctx
			<-release
			return nil
		})
		cfg := b.config()
		cfg.DrainTimeout, cfg.BatchMax = 50*time.Millisecond, 2
		r := start(t, cfg, book)
		status := r.await(t, "everything is in flight", func(s kafka.Status) bool {
			return len(s.Partitions) == 1 && s.Partitions[0].InFlight == 5
		})
		ctx := <-began
		require.ErrorContains(t, r.stop(t), fmt.Sprintf("%d batches did not end within", status.Partitions[0].Batches))
		require.ErrorIs(t, ctx.Err(), context.Canceled, "it was told to give up")
		require.Equal(t, 1, r.Status().Leaving)
		require.Empty(t, b.committed(t))
	})
}

func TestARebalanceUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 6, nil)
		const perPartition = 1500
		book := newLedger(func(context.Context, []domain.Record) error {
			time.Sleep(time.Millisecond) // the work that a rebalance interrupts
			return nil
		})
		cfg := b.config()
		cfg.BatchMax = 16
		first := start(t, cfg, book)

		var producing sync.WaitGroup
		producing.Go(func() {
			for from := 0; from < perPartition; from += 50 {
				for partition := range int32(6) {
					b.fill(t, partition, from, 50)
				}
			}
		})
		var violated atomic.Value
		watching, endWatch := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() {
			for watching.Err() == nil {
				if missing := book.missingBelow(b.committed(t)); len(missing) > 0 {
					violated.Store(missing)
				}
			}
		})

		book.await(t, 200)
		second := start(t, cfg, book)
		shares := func(s kafka.Status) bool { return len(s.Partitions) == 3 }
		second.await(t, "the second one has its share", shares)
		first.await(t, "the first one has kept its share", shares)
		require.NoError(t, first.stop(t))
		second.await(t, "the second one has all", func(s kafka.Status) bool { return len(s.Partitions) == 6 })
		third := start(t, cfg, book)
		third.await(t, "the third one has its share", shares)
		producing.Wait()
		book.await(t, 6*perPartition)
		want := map[int32]int64{}
		for partition := range int32(6) {
			want[partition] = perPartition
		}
		b.awaitCommitted(t, want)
		endWatch()
		watch.Wait()
		require.Nil(t, violated.Load(), "an offset was committed before what is below it was durable")
		require.NoError(t, second.stop(t))
		require.NoError(t, third.stop(t))
	})
}

func TestAbortedTransactionsAreNotDeliveredAndLagReachesZero(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, in positionsIn) {
		t.Helper()
		b := setupKeeping(t, in, brokersUnderTest(t), 1, nil)
		book := newLedger(nil)
		r := start(t, b.config(), book)

		producer, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group),
			kgo.DefaultProduceTopic(b.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		t.Cleanup(producer.Close)
		transact := func(end kgo.TransactionEndTry, values ...string) {
			require.NoError(t, producer.BeginTransaction())
			for _, value := range values {
				require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr())
			}
			require.NoError(t, producer.EndTransaction(t.Context(), end))
		}
		transact(kgo.TryCommit, "a", "b")
		transact(kgo.TryAbort, "x", "y")
		transact(kgo.TryCommit, "c")
		transact(kgo.TryAbort, "z")

		book.await(t, 3)
		require.Equal(t, []string{"a", "b", "c"}, book.values(0))
		// Six records and four control records: the end is behind all of them.
		b.awaitCommitted(t, map[int32]int64{0: 10})
		r.await(t, "lag 0", func(s kafka.Status) bool {
			return s.Partitions[0].HighWatermark == 10 && s.Partitions[0].Lag == 0
		})
		require.NoError(t, r.stop(t))
	})
}

func TestTopicsAreCreatedWhereMissing(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 2, nil)
	cfg := b.config()
	specs := []kafka.TopicSpec{
		{Name: b.topic, Partitions: 5},
		{Name: b.topic + ".new", Partitions: 3},
		{Name: b.topic + ".default"},
	}
	cfg.CreateTopics = false
	require.NoError(t, kafka.EnsureTopics(t.Context(), cfg, testLogger(t), specs))
	found, err := b.admin.ListTopics(t.Context())
	require.NoError(t, err)
	require.NotContains(t, slices.Collect(maps.Keys(found)), b.topic+".new")

	cfg.CreateTopics = true
	for range 2 { // the second time all are there
		require.NoError(t, kafka.EnsureTopics(t.Context(), cfg, testLogger(t), specs))
		require.Eventually(t, func() bool { // a broker may hear of a topic later than its controller
			found, err = b.admin.ListTopics(t.Context(), b.topic, b.topic+".new", b.topic+".default")
			return err == nil && len(found[b.topic+".new"].Partitions) > 0 && len(found[b.topic+".default"].Partitions) > 0
		}, 30*time.Second, 50*time.Millisecond)
		require.Len(t, found[b.topic].Partitions, 2, "an existing topic stays as it is")
		require.Len(t, found[b.topic+".new"].Partitions, 3)
		require.NotEmpty(t, found[b.topic+".default"].Partitions)
	}
	cfg.TopicReplication = 99
	err = kafka.EnsureTopics(t.Context(), cfg, testLogger(t), []kafka.TopicSpec{{Name: b.topic}, {Name: b.topic + ".wide"}})
	require.ErrorContains(t, err, "create topic "+b.topic+".wide: ")
}

func TestCheckTellsWhetherTheTopicCanBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	cfg := b.config()
	r := start(t, cfg, newLedger(nil))
	r.await(t, "running", func(s kafka.Status) bool { return s.Running })
	require.NoError(t, r.Check(t.Context()))
	require.NoError(t, r.stop(t))
	require.ErrorContains(t, r.Check(t.Context()), "not consuming")

	cfg.Topic = b.topic + ".missing"
	lost := start(t, cfg, newLedger(nil))
	lost.await(t, "running", func(s kafka.Status) bool { return s.Running })
	require.ErrorContains(t, lost.Check(t.Context()), cfg.Topic)
	require.NoError(t, lost.stop(t))
}
