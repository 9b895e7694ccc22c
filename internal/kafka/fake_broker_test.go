//go:build !apache

package kafka_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// The tests of this file need a broker that misbehaves on demand.

func TestALostAssignmentIsNotCommittedAndRunsAgain(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	b.fill(t, 0, 0, 40)
	began, release := make(chan context.Context, 40), make(chan struct{})
	book := newLedger(func(ctx context.Context, _ []domain.Record) error {
		began <- ctx
		<-release
		return nil
	})
	cfg := b.config()
	cfg.LaneRecords = 10
	r := start(t, cfg, book)
	ctx := <-began
	status := r.await(t, "paused: in this client a pause outlives the assignment", func(s kafka.Status) bool {
		return s.Partitions[0].Paused != "" && s.Partitions[0].InFlight == 10
	})
	batches := status.Partitions[0].Batches
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: b.group, Err: kerr.UnknownMemberID})
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		require.FailNow(t, "what has not called yet was not cancelled")
	}
	// The partition comes back while the old batches are still at it: the new lane waits for them.
	r.await(t, "assigned again", func(s kafka.Status) bool {
		return len(s.Partitions) == 1 && s.Partitions[0].Queued == 10 && s.Partitions[0].Batches == 0
	})
	require.Len(t, began, batches-1, "no batch of the new lane has begun")
	require.Empty(t, b.committed(t))
	close(release)
	book.awaitThat(t, "everything again", func() bool { return len(book.durable[0]) == 10+40 })
	values := book.values(0)
	require.Equal(t, numbered(10, 30), values[20:])
	require.Equal(t, numbered(0, 10), slices.Compact(values[:20]))
	b.awaitCommitted(t, map[int32]int64{0: 40})
	require.NoError(t, r.stop(t))
}

func TestABatchThatEndsAfterItsAssignmentWasLostMovesNoOffset(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	b.fill(t, 0, 0, 10)
	began, release := make(chan context.Context, 16), make(chan struct{})
	book := newLedger(func(ctx context.Context, _ []domain.Record) error {
		began <- ctx
		<-release
		return nil
	})
	cfg := b.config()
	cfg.BatchMax = 10
	r := start(t, cfg, book)
	ctx := <-began
	// It may not come back: every attempt to join again is refused.
	join := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.JoinGroup}, Group: b.group, Err: kerr.CoordinatorNotAvailable, Count: -1,
	})
	commits := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: b.group, Observe: true, Count: -1})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: b.group, Err: kerr.UnknownMemberID})
	<-ctx.Done()
	r.await(t, "given up", func(s kafka.Status) bool { return len(s.Partitions) == 0 })
	close(release)
	book.await(t, 1)
	r.await(t, "the old lane has ended", func(s kafka.Status) bool { return s.Leaving == 0 })
	require.NoError(t, r.stop(t))
	require.Zero(t, commits.Hits())
	require.Empty(t, b.committed(t))
	join.Remove()
}

func TestAFatalErrorEndsRunWithinSeconds(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	b.fill(t, 0, 0, 10)
	book := newLedger(func(ctx context.Context, _ []domain.Record) error {
		<-ctx.Done() // a call that has not begun gives up when told
		return ctx.Err()
	})
	r := start(t, b.config(), book)
	r.await(t, "billing", func(s kafka.Status) bool {
		return len(s.Partitions) == 1 && s.Partitions[0].State == kafka.Billing
	})
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: b.group, Err: kerr.FencedInstanceID})
	began := time.Now()
	require.ErrorContains(t, r.wait(t), "fenced")
	require.Less(t, time.Since(began), 10*time.Second)
	require.NotEmpty(t, r.Status().Fatal)
	require.Error(t, r.Check(t.Context()))
	require.Empty(t, b.committed(t))
}

func TestARefusedCommitIsKeptAndTriedAgain(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	refused := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: b.group, Err: kerr.RebalanceInProgress, Count: 3,
	})
	b.fill(t, 0, 0, 10)
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 10)
	b.awaitCommitted(t, map[int32]int64{0: 10})
	require.Equal(t, 3, refused.Hits())
	require.NoError(t, r.stop(t))
	require.Len(t, book.durable[0], 10, "nothing was run again for it")
}

func TestAStopCommitsAlsoWhenTheFirstTriesAreRefused(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	b.fill(t, 0, 0, 10)
	began, release := make(chan struct{}, 10), make(chan struct{})
	book := newLedger(func(context.Context, []domain.Record) error {
		began <- struct{}{}
		<-release
		return nil
	})
	cfg := b.config()
	cfg.BatchMax = 10
	r := start(t, cfg, book)
	<-began
	r.end()
	r.await(t, "draining", func(s kafka.Status) bool { return !s.Running })
	cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: b.group, Err: kerr.RebalanceInProgress, Count: 2,
	})
	close(release)
	require.NoError(t, r.wait(t))
	require.EqualValues(t, len(book.durable[0]), b.committed(t)[0])
}

func TestABrokerThatComesBackIsGoneOnWith(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	dir := t.TempDir()
	up := func() *kfake.Cluster {
		var cluster *kfake.Cluster
		require.Eventually(t, func() bool {
			var err error
			cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir),
				kfake.GroupMinSessionTimeout(100*time.Millisecond))
			return err == nil
		}, patience, 50*time.Millisecond)
		return cluster
	}
	cluster := up()
	b := setup(t, []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, 2, nil)
	b.fill(t, 0, 0, 100)
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 100)
	b.awaitCommitted(t, map[int32]int64{0: 100, 1: 0})

	cluster.Close()
	r.await(t, "the trouble shows", func(s kafka.Status) bool { return s.BrokerError != "" })
	require.Eventually(t, func() bool { return r.Check(t.Context()) != nil }, patience, 20*time.Millisecond)
	cluster = up()
	t.Cleanup(func() { cluster.Close() })
	b.fill(t, 1, 0, 100)
	book.await(t, 200)
	b.awaitCommitted(t, map[int32]int64{0: 100, 1: 100})
	r.await(t, "the trouble is over", func(s kafka.Status) bool { return s.BrokerError == "" })
	require.Eventually(t, func() bool { return r.Check(t.Context()) == nil }, patience, 20*time.Millisecond)
	require.NoError(t, r.stop(t))
	require.Empty(t, book.missingBelow(b.committed(t)))
}

func TestAStopWithoutItsBrokerIsClean(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	b.fill(t, 0, 0, 10)
	book := newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 10)
	b.awaitCommitted(t, map[int32]int64{0: 10})
	cluster.Close()
	r.await(t, "the trouble shows", func(s kafka.Status) bool { return s.BrokerError != "" })
	require.NoError(t, r.stop(t))
}

// Closing this client in the midst of a rebalance hangs or crashes the process, now
// and then: many stops at any moment of a consumer's first steps.
func TestAStopInTheMidstOfJoiningIsClean(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 2, nil)
	resident := start(t, b.config(), newLedger(nil)) // makes every join a rebalance
	resident.await(t, "assigned", func(s kafka.Status) bool { return len(s.Partitions) == 2 })
	var stopping sync.WaitGroup
	for i := range 3 {
		stopping.Go(func() {
			for round := range 5 {
				consumer, err := kafka.New(b.config(), newLedger(nil), testLogger(t), kafka.Telemetry{}, domain.SystemClock{})
				if err != nil {
					t.Errorf("new: %v", err)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*5+round)*15*time.Millisecond)
				if err := consumer.Run(ctx); err != nil {
					t.Errorf("run: %v", err)
				}
				cancel()
			}
		})
	}
	stopping.Wait()
	require.NoError(t, resident.stop(t))
}

func TestHoweverOftenReadinessIsAskedForTheBrokersAreNot(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	r := start(t, b.config(), newLedger(nil))
	r.await(t, "assigned", func(s kafka.Status) bool { return len(s.Partitions) == 1 })
	asked := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Observe: true, Count: -1})
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 25 {
				if err := r.Check(t.Context()); err != nil {
					t.Errorf("check: %v", err)
				}
			}
		})
	}
	asking.Wait()
	require.Less(t, asked.Hits(), 10, "of 200 checks")
	require.NoError(t, r.stop(t))
}

func TestAConsumerIsRunOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	consumer, err := kafka.New(b.config(), newLedger(nil), testLogger(t), kafka.Telemetry{}, domain.SystemClock{})
	require.NoError(t, err)
	require.NoError(t, consumer.Close())
	require.NoError(t, consumer.Close())
	require.ErrorContains(t, consumer.Run(t.Context()), "Run after Run or Close")
	require.Error(t, consumer.Check(t.Context()))
	require.Empty(t, consumer.Status().Partitions)
}

func TestANeedlessStopIsClean(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	consumer, err := kafka.New(b.config(), newLedger(nil), testLogger(t), kafka.Telemetry{}, domain.SystemClock{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped before it began"))
	require.NoError(t, consumer.Run(ctx))
}

func TestWithoutBrokersAStopIsCleanToo(t *testing.T) {
	t.Parallel()
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Topic, cfg.GroupID = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))}, "t", "g"
	r := start(t, cfg, newLedger(nil))
	r.await(t, "the trouble shows", func(s kafka.Status) bool { return s.BrokerError != "" })
	require.Error(t, r.Check(t.Context()))
	require.NoError(t, r.stop(t))
}

// freePort returns a port on which nothing listens at this moment.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return address.Port
}
