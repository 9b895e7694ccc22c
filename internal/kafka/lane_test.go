package kafka

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// handBiller lets a test decide, batch by batch, what becomes of it.
type handBiller struct {
	batches chan []domain.Record // a batch that has begun
	outcome chan error           // what to return for it
	admit   chan error           // nil: always admitted
}

func (b *handBiller) Admit(ctx context.Context) (domain.Pass, error) {
	if b.admit == nil {
		return domain.Pass{}, ctx.Err()
	}
	select {
	case err := <-b.admit:
		return domain.Pass{}, err
	case <-ctx.Done():
		return domain.Pass{}, ctx.Err()
	}
}

func (b *handBiller) Bill(_ context.Context, _ domain.Pass, records []domain.Record) error {
	b.batches <- records
	return <-b.outcome
}

// laneBundle is a lane on its own, and what it noted.
type laneBundle struct {
	*lane
	biller *handBiller
	notes  chan mark
}

func setupLane(t *testing.T, biller *handBiller, earlier *lane) *laneBundle {
	t.Helper()
	metrics, err := newTelemetry(Telemetry{}, "t", "g", func() Status { return Status{} })
	require.NoError(t, err)
	notes := make(chan mark, 16)
	cfg := DefaultConfig()
	cfg.BatchMax = 4
	l := newLane(context.WithoutCancel(t.Context()), &crew{
		cfg: cfg, biller: biller, slots: make(chan struct{}, 1), metrics: metrics, clock: domain.SystemClock{},
		note:   func(_ *lane, position mark) { notes <- position },
		logger: slog.New(slog.DiscardHandler),
	}, 0, earlier)
	go l.run()
	t.Cleanup(func() {
		l.stop()
		<-l.done
	})
	return &laneBundle{lane: l, biller: biller, notes: notes}
}

func newHandBiller() *handBiller {
	return &handBiller{batches: make(chan []domain.Record), outcome: make(chan error)}
}

// silent asserts that nothing was noted.
func (b *laneBundle) silent(t *testing.T, why string) {
	t.Helper()
	select {
	case position := <-b.notes:
		require.Failf(t, "noted", "%+v: %s", position, why)
	default:
	}
}

func TestLane(t *testing.T) {
	t.Parallel()

	t.Run("an idle lane's position moves to the end of the partition", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t, newHandBiller(), nil)
		l.reachEnd(mark{offset: 12, epoch: 1})
		require.Equal(t, mark{offset: 12, epoch: 1}, <-l.notes)
		require.EqualValues(t, 12, l.status().Done)
	})
	t.Run("the end counts only once everything before it is durable", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t, newHandBiller(), nil)
		l.push(at(3, 1))
		require.Len(t, <-l.biller.batches, 1)
		l.push(at(4, 1))
		l.reachEnd(mark{offset: 9})
		l.silent(t, "a batch is in flight")
		l.biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
		require.Len(t, <-l.biller.batches, 1)
		l.silent(t, "another one is")
		l.biller.outcome <- nil
		require.EqualValues(t, 5, (<-l.notes).offset)
		require.EqualValues(t, 9, (<-l.notes).offset)
	})
	t.Run("an end with records behind it is no end", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t, newHandBiller(), nil)
		l.push(at(3, 1))
		<-l.biller.batches
		l.reachEnd(mark{offset: 9})
		l.push(at(20, 1))
		l.biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
		<-l.biller.batches
		l.silent(t, "the end was given up")
		l.biller.outcome <- nil
		require.EqualValues(t, 21, (<-l.notes).offset)
		require.EqualValues(t, 21, l.status().Done)
		l.silent(t, "it does not go back to the end given up")
	})
	t.Run("a failed batch moves nothing, also when the end is known", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t, newHandBiller(), nil)
		l.push(at(3, 1))
		first := <-l.biller.batches
		l.push(at(4, 1))
		l.reachEnd(mark{offset: 9})
		l.biller.outcome <- errors.New("no database")
		require.Equal(t, first, <-l.biller.batches, "the same records, though more wait")
		l.silent(t, "nothing is durable")
		require.Equal(t, 1, l.status().Failures)
		require.EqualValues(t, 3, l.status().Done)
		l.biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
		require.Zero(t, l.status().Failures)
		<-l.biller.batches
		l.biller.outcome <- nil
	})
	t.Run("a repeated offset is handed over again in a batch of its own", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t, newHandBiller(), nil)
		l.push(at(3, 1))
		<-l.biller.batches
		l.push(at(3, 1))
		l.push(at(3, 1))
		for range 2 {
			l.biller.outcome <- nil
			require.EqualValues(t, 4, (<-l.notes).offset)
			require.Len(t, <-l.biller.batches, 1)
		}
		l.biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
	})
	t.Run("nothing is taken while intake is not admitted, and a stop ends the wait", func(t *testing.T) {
		t.Parallel()
		biller := newHandBiller()
		biller.admit = make(chan error)
		l := setupLane(t, biller, nil)
		l.push(at(3, 1))
		require.Eventually(t, func() bool { return l.status().State == Waiting }, soon, time.Millisecond)
		biller.admit <- errors.New("intake is not to be had")
		biller.admit <- nil
		<-biller.batches
		l.push(at(4, 1))
		biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
		l.stop()
		<-l.done
		require.Equal(t, 1, l.status().Queued)
	})
	t.Run("a lane waits for an earlier one of its partition", func(t *testing.T) {
		t.Parallel()
		earlier := setupLane(t, newHandBiller(), nil)
		earlier.push(at(3, 1))
		<-earlier.biller.batches
		earlier.stop()
		l := setupLane(t, newHandBiller(), earlier.lane)
		l.push(at(3, 1))
		select {
		case <-l.biller.batches:
			require.Fail(t, "two lanes at once")
		case <-time.After(20 * time.Millisecond):
		}
		earlier.biller.outcome <- nil
		<-l.biller.batches
		l.biller.outcome <- nil
		require.EqualValues(t, 4, (<-l.notes).offset)
	})
}
