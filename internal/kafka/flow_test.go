//go:build !apache

package kafka

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
)

// flowBundle is a consumer whose poll loop the test turns itself, so that it can
// come between two rounds.
type flowBundle struct {
	*Consumer
	biller *handBiller
}

func setupFlow(t *testing.T, records int, edit func(*Config)) *flowBundle {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"),
		kfake.GroupMinSessionTimeout(100*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("t"))
	require.NoError(t, err)
	defer producer.Close()
	for range records {
		require.NoError(t, producer.ProduceSync(t.Context(), kgo.StringRecord("v")).FirstErr())
	}
	cfg := DefaultConfig()
	cfg.Brokers, cfg.Topic, cfg.GroupID, cfg.SessionTimeout = cluster.ListenAddrs(), "t", "g", 2*time.Second
	edit(&cfg)
	biller := newHandBiller()
	c, err := New(cfg, biller, slog.New(slog.DiscardHandler), Telemetry{}, domain.SystemClock{})
	require.NoError(t, err)
	c.root = context.WithoutCancel(t.Context())
	aside, end := context.WithCancel(c.root)
	var helpers sync.WaitGroup
	helpers.Go(func() { c.committer.run(aside) })
	helpers.Go(func() { c.watchEnds(aside) })
	require.NoError(t, c.client.Subscribe("t", c.onRebalance))
	t.Cleanup(func() {
		for _, l := range c.takeAll() {
			l.cancel()
		}
		end()
		helpers.Wait()
		require.NoError(t, c.leave())
	})
	return &flowBundle{Consumer: c, biller: biller}
}

// turn polls until ok.
func (b *flowBundle) turn(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		require.True(t, time.Now().Before(end), what)
		b.handle(b.client.Poll(b.tend()))
	}
}

// Behind our back the client is paused: as when it has dropped a resume.
func TestAPartitionThatStaysSilentIsResumedAgain(t *testing.T) {
	t.Parallel()
	b := setupFlow(t, 3, func(*Config) {})
	b.turn(t, "assigned", func() bool { return len(b.lanes) == 1 })
	require.Contains(t, b.awaited, int32(0))
	require.NoError(t, b.client.Pause(b.parts(0)))
	l := b.lanes[0]
	b.turn(t, "heard of", func() bool { return l.status().Queued > 0 })
	require.Empty(t, b.awaited)
	<-b.biller.batches
	close(b.biller.over)
}

// Behind our back the client is resumed: as when it has dropped a pause.
func TestAPartitionThatDoesNotStopIsPausedAgain(t *testing.T) {
	t.Parallel()
	b := setupFlow(t, 200, func(cfg *Config) { cfg.LaneRecords = 10 })
	b.turn(t, "paused", func() bool { return b.paused[0] })
	l := b.lanes[0]
	require.Equal(t, 10, l.status().Queued)
	<-b.biller.batches
	for range 5 {
		before := l.status().Queued
		require.NoError(t, b.client.Resume(b.parts(0)))
		b.wakeFetcher()
		b.turn(t, "one more came", func() bool { return l.status().Queued > before })
		rest := time.Now().Add(150 * time.Millisecond) // longer than a fetch
		b.turn(t, "no more came", func() bool { return time.Now().After(rest) })
		require.Equal(t, before+1, l.status().Queued, "the pause was not renewed")
	}
	close(b.biller.over)
}

func TestNoPauseOutlivesAnAssignment(t *testing.T) {
	t.Parallel()
	b := setupFlow(t, 20, func(cfg *Config) { cfg.LaneRecords = 10 })
	b.turn(t, "paused", func() bool { return b.paused[0] })
	l := b.lanes[0]
	first := <-b.biller.batches
	l.stop()
	first.outcome <- nil
	require.NoError(t, b.revoked(b.parts(0)))
	require.Empty(t, b.paused)
	require.NoError(t, b.client.IncrementalAssign(b.parts(0)))
	b.begin(0, nil) // and no resume
	again := b.lanes[0]
	b.turn(t, "records come", func() bool { return again.status().Queued > 0 })
	<-b.biller.batches
	close(b.biller.over)
}
