//go:build !apache

package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/billing/internal/kafka"
)

// The tests of this file need a broker that misbehaves on demand.

func TestABrokerThatIsAwayIsWaitedForAndShown(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	s := &shelf{}
	outage := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.topic, Err: kerr.NotEnoughReplicas, Count: -1})
	s.add(events(0, 15)...)
	r := b.relay(t, s, func(c *kafka.RelayConfig) { c.Attempt = time.Second })
	require.Eventually(t, func() bool {
		now := r.Status()
		return outage.Hits() > 0 && now.Error != "" && !now.ErrorSince.IsZero() && now.Backlog.Rows == 15 && !now.Backlog.Oldest.IsZero()
	}, patience, time.Millisecond)
	since := r.Status().ErrorSince
	require.Zero(t, s.moves)
	outage.Remove()
	s.awaitEmpty(t)
	require.Eventually(t, func() bool { return r.Status().Error == "" }, patience, time.Millisecond)
	require.True(t, r.Status().LastTurn.After(since))
	require.Empty(t, s.refused, "an outage is no record's fault")
	require.Equal(t, numbered(0, 15), distinct(valuesOf(b.published(t, b.topic, 15))))
}

func TestATopicThatRefusesUsHoldsUpForAWhileAndIsPassedOverThen(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	s := &shelf{}
	closed := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	s.add(events(0, 3)...)
	r := b.relay(t, s, func(c *kafka.RelayConfig) { c.Patience = 700 * time.Millisecond })
	require.Eventually(t, func() bool { return r.Status().Error != "" }, patience, time.Millisecond)
	require.Equal(t, 3, s.left(), "somebody may be about to allow it")
	s.awaitEmpty(t)
	require.Len(t, s.refused, 3)
	require.Contains(t, s.refused[0].Reason, "uthoriz")
	closed.Remove()
	s.add(event(9))
	s.awaitEmpty(t)
	require.Len(t, s.refused, 3, "allowed again: %v", s.refused)
	require.Equal(t, []string{"9"}, valuesOf(b.published(t, b.topic, 1)))
}

func TestTheProducerIsIdempotentAndWaitsForEveryReplica(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	asked := make(chan *kmsg.ProduceRequest, 1)
	cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		produce, ok := request.(*kmsg.ProduceRequest)
		if !ok {
			return nil, errors.New("a produce request of another type"), true
		}
		select {
		case asked <- produce:
		default:
		}
		return nil, nil, false // go on as ever
	})
	s := &shelf{}
	s.add(event(1))
	b.relay(t, s)
	s.awaitEmpty(t)
	request := <-asked
	require.EqualValues(t, -1, request.Acks, "-1: all")
	var sent kmsg.RecordBatch
	require.NoError(t, sent.ReadFrom(request.Topics[0].Partitions[0].Records))
	require.GreaterOrEqual(t, sent.ProducerID, int64(0), "-1: none, and a request that is sent again is appended again")
}

func TestARelayWithoutABrokerEndsInTime(t *testing.T) {
	t.Parallel()
	cluster := fakeBroker(t)
	b := setup(t, cluster.ListenAddrs(), 1, nil)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.topic, Err: kerr.NotEnoughReplicas, Count: -1})
	s := &shelf{}
	s.add(events(0, 3)...)
	r := b.relay(t, s, func(c *kafka.RelayConfig) { c.Drain = 50 * time.Millisecond; c.Attempt = time.Hour })
	require.Eventually(t, func() bool { return r.Status().Leading }, patience, time.Millisecond)
	r.stop(t)
	require.Equal(t, 3, s.left(), "it stays in the outbox")
}

// distinct leaves out what follows its like.
func distinct(values []string) (d []string) {
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			d = append(d, v)
		}
	}
	return d
}
