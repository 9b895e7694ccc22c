package kafka

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// handed is a batch whose Bill is under way.
type handed struct {
	records []domain.Record
	pass    domain.Pass
	ctx     context.Context //nolint:containedctx // what the lane gave, for the test to look at
	outcome chan error
}

func (h *handed) end(err error) { h.outcome <- err }

// handBiller lets a test decide, batch by batch, what becomes of it. The keys are real.
type handBiller struct {
	*domain.Biller
	batches chan *handed  // one that has begun
	admit   chan error    // nil: always admitted
	over    chan struct{} // closed when the test is: every batch ends
}

func newHandBiller() *handBiller {
	clock, log := domain.SystemClock{}, slog.New(slog.DiscardHandler)
	biller := domain.NewBiller(domain.Policy{}, domain.Decoder{}, nil, nil, domain.NewGate(clock), clock, log)
	return &handBiller{Biller: biller, batches: make(chan *handed), over: make(chan struct{})}
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

func (b *handBiller) Bill(ctx context.Context, pass domain.Pass, records []domain.Record) error {
	begun := &handed{records: records, pass: pass, ctx: ctx, outcome: make(chan error)}
	select {
	case b.batches <- begun:
	case <-b.over:
		return nil
	}
	select {
	case err := <-begun.outcome:
		return err
	case <-b.over:
		return nil
	}
}

// next returns the next batch that begins, which has these offsets.
func (b *handBiller) next(t *testing.T, want ...int64) *handed {
	t.Helper()
	select {
	case begun := <-b.batches:
		require.Equal(t, want, offsetsOf(begun.records))
		return begun
	case <-time.After(soon):
		require.FailNow(t, "no batch began", "%v", want)
		return nil
	}
}

// none asserts that no batch begins within a few lingers.
func (b *handBiller) none(t *testing.T, why string) {
	t.Helper()
	select {
	case begun := <-b.batches:
		require.Failf(t, "a batch began", "%v: %s", offsetsOf(begun.records), why)
	case <-time.After(4 * lingerFor):
	}
}

// crewBundle is what the lanes of a test share.
type crewBundle struct {
	*crew
	biller *handBiller
	notes  map[int32]chan mark // what the lane of each partition noted
	endAll func()              // ends all batches, those left over by the test included
}

func setupCrew(t *testing.T, slots int) *crewBundle {
	t.Helper()
	metrics, err := newTelemetry(Telemetry{}, "t", "g", func() Status { return Status{} })
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.BatchMax = 8
	b := &crewBundle{biller: newHandBiller(), notes: map[int32]chan mark{}}
	for partition := range int32(3) {
		b.notes[partition] = make(chan mark, 64)
	}
	b.crew = &crew{
		cfg: cfg, biller: b.biller, slots: make(chan struct{}, slots), flights: newFlights(),
		metrics: metrics, clock: domain.SystemClock{}, logger: slog.New(slog.DiscardHandler),
		note: func(l *lane, position mark) { b.notes[l.partition] <- position },
	}
	b.endAll = sync.OnceFunc(func() { close(b.biller.over) })
	return b
}

// laneBundle is a lane that runs until the test ends.
type laneBundle struct {
	*lane
	biller *handBiller
	notes  chan mark
}

func (b *crewBundle) lane(t *testing.T, partition int32, earlier *lane) *laneBundle {
	t.Helper()
	l := newLane(context.WithoutCancel(t.Context()), b.crew, partition, earlier)
	go l.run()
	t.Cleanup(func() {
		b.endAll()
		l.stop()
		<-l.done
	})
	return &laneBundle{lane: l, biller: b.biller, notes: b.notes[partition]}
}

// setupLane starts a lane that has one slot to itself.
func setupLane(t *testing.T) *laneBundle {
	t.Helper()
	return setupCrew(t, 1).lane(t, 0, nil)
}

// fill pushes records without an event.
func (b *laneBundle) fill(offsets ...int64) {
	for _, offset := range offsets {
		b.push(at(offset, 1))
	}
}

// noted waits for the lane to note exactly these positions, in order.
func (b *laneBundle) noted(t *testing.T, want ...int64) {
	t.Helper()
	for _, offset := range want {
		select {
		case position := <-b.notes:
			require.Equal(t, offset, position.offset)
		case <-time.After(soon):
			require.FailNow(t, "not noted", "%d", offset)
		}
	}
}

// reaches waits for the lane to note a position, by steps that only go forward.
func (b *laneBundle) reaches(t *testing.T, want int64) {
	t.Helper()
	for last := int64(0); last < want; {
		select {
		case position := <-b.notes:
			require.Greater(t, position.offset, last)
			require.LessOrEqual(t, position.offset, want)
			last = position.offset
		case <-time.After(soon):
			require.FailNow(t, "not reached", "%d", want)
		}
	}
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

// await waits until the lane's status satisfies ok.
func (b *laneBundle) await(t *testing.T, what string, ok func(PartitionStatus) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return ok(b.status()) }, soon, time.Millisecond, what)
}
