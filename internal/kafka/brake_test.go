package kafka_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// waitsOn reports whether all of so many partitions wait for an operator with records.
func waitsOn(partitions, queued int) func(kafka.Status) bool {
	return func(s kafka.Status) bool {
		return len(s.Partitions) == partitions && !slices.ContainsFunc(s.Partitions, func(p kafka.PartitionStatus) bool {
			return p.Paused != kafka.PausedByOperator || p.Queued != queued || p.Batches > 0
		})
	}
}

func TestAnOperatorsPauseOutlivesRebalances(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 4, nil)
	for partition := range int32(4) {
		b.fill(t, partition, 0, 10)
	}
	book, others := newLedger(nil), newLedger(nil)
	r := start(t, b.config(), book)
	book.await(t, 40)
	r.Pause("ann", "the provider moves")
	first := r.Status().Operator
	require.Equal(t, "ann", first.By)
	require.Equal(t, "the provider moves", first.Reason)
	r.Pause("bob", "still")
	require.Equal(t, kafka.Pause{By: "bob", Reason: "still", Since: first.Since}, *r.Status().Operator)
	for partition := range int32(4) {
		b.fill(t, partition, 10, 10)
	}
	r.await(t, "all wait", waitsOn(4, 10))

	other := start(t, b.config(), others)
	others.await(t, 20) // two partitions go to another member, with what waited in them
	r.await(t, "two wait", waitsOn(2, 10))
	require.NoError(t, other.stop(t))
	r.await(t, "four are ours again", func(s kafka.Status) bool { return len(s.Partitions) == 4 })
	for _, p := range r.Status().Partitions {
		if p.Queued == 0 {
			b.fill(t, p.Partition, 20, 10)
		}
	}
	r.await(t, "what came back waits too", waitsOn(4, 10))
	require.Len(t, slices.Concat(book.values(0), book.values(1), book.values(2), book.values(3)), 40, "nothing was begun")

	r.Resume("bob")
	book.await(t, 80)
	require.Nil(t, r.Status().Operator)
	require.NoError(t, r.stop(t))
}

// A paused consumer drains, and gives back what it had not begun.
func TestAPausedConsumerStops(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 2, nil)
	book := newLedger(nil)
	r := start(t, b.config(), book)
	r.Pause("ann", "")
	for partition := range int32(2) {
		b.fill(t, partition, 0, 10)
	}
	r.await(t, "all wait", waitsOn(2, 10))
	require.NoError(t, r.stop(t))
	next := start(t, b.config(), book)
	book.await(t, 20)
	require.NoError(t, next.stop(t))
}

func TestResumingLeavesWhatFlowControlHasPaused(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	release := make(chan struct{})
	book := newLedger(func(context.Context, []domain.Record) error {
		<-release
		return nil
	})
	cfg := b.config()
	cfg.BatchMax, cfg.LaneRecords = 4, 40
	r := start(t, cfg, book)
	r.Pause("ann", "")
	b.fill(t, 0, 0, 200)
	r.await(t, "full", func(s kafka.Status) bool { return len(s.Partitions) == 1 && s.Partitions[0].Queued >= 40 })
	r.Resume("ann")
	r.await(t, "full still", func(s kafka.Status) bool {
		return s.Partitions[0].Batches > 0 && s.Partitions[0].Paused == kafka.PausedQueueFull && s.Partitions[0].Queued >= 40
	})
	close(release)
	book.await(t, 200)
	require.NoError(t, r.stop(t))
}
