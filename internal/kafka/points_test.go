package kafka_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// watch is told the points.
type watch func(domain.Point)

func (w watch) Hit(_ context.Context, at domain.Point) { w(at) }

func TestThePointInTheRelayIsAfterThePublicationAndBeforeTheCursorMoves(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 1, nil)
	s := &shelf{}
	s.add(domain.Message{Kind: domain.EventMessage, Key: []byte("1"), Value: []byte("one")})
	type seen struct {
		published string
		left      int
	}
	reached := make(chan seen, 1)
	cfg := b.config()
	cfg.Faults = watch(func(at domain.Point) {
		if at == domain.InRelay {
			reached <- seen{string(b.published(t, b.topic, 1)[0].Value), s.left()}
		}
	})
	relay := kafka.DefaultRelayConfig()
	relay.Topics = map[domain.MessageKind]string{domain.EventMessage: b.topic}
	r := b.relayOf(t, cfg, s, relay)
	require.Equal(t, seen{"one", 1}, <-reached)
	s.awaitEmpty(t)
	r.stop(t)
}

func TestThePointOfARevocationIsBeforeItsDrain(t *testing.T) {
	t.Parallel()
	b := setup(t, brokersUnderTest(t), 2, nil)
	book := newLedger(nil)
	cfg := b.config()
	held := make(chan int, 1)
	started := make(chan *running, 1)
	cfg.Faults = watch(func(at domain.Point) {
		if at != domain.InRevoke {
			return
		}
		first := <-started
		started <- first
		select {
		case held <- len(first.Status().Partitions):
		default: // there may be more rebalances
		}
	})
	first := start(t, cfg, book)
	started <- first
	first.await(t, "the first one has all", func(s kafka.Status) bool { return len(s.Partitions) == 2 })
	second := start(t, b.config(), book)
	second.await(t, "the second one has its share", func(s kafka.Status) bool { return len(s.Partitions) == 1 })
	require.Equal(t, 2, <-held)
	require.NoError(t, first.stop(t))
	require.NoError(t, second.stop(t))
}
