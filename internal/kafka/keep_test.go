package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// Batches of a lane end in any order, some fail and are run again; at every moment each of
// those in flight asks how far it may write the position.
func TestNoBatchWritesAPositionPastAnUnfinishedRecord(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var q queue
		stands := map[int64]bool{} // by offset: durable
		var offsets []int64
		var flying []*batch
		next := random.Int64N(5)
		for range 120 {
			switch random.IntN(4) {
			case 0:
				q.push(at(next, 1))
				offsets = append(offsets, next)
				next += 1 + random.Int64N(3) // gaps, as of control records
			case 1:
				if b := takes(&q, 1+random.IntN(5), func(*item) bool { return random.IntN(6) > 0 }); len(b.records) > 0 {
					flying = append(flying, b)
				}
				q.release()
			case 2:
				for _, b := range flying {
					part := b.records[:1+random.IntN(len(b.records))] // one by one, so far
					last := part[len(part)-1].Offset
					to, some := q.prefix(b, last)
					for _, offset := range offsets {
						ours := offset <= last && slicesHas(part, offset)
						if some && offset < to.offset {
							require.True(t, stands[offset] || ours, "seed %d: %d is not durable below %d", seed, offset, to.offset)
						}
						if !stands[offset] && !ours {
							break
						}
						require.True(t, some && to.offset > offset, "seed %d: the position could be past %d", seed, offset)
					}
				}
			case 3:
				if len(flying) == 0 {
					continue
				}
				n := random.IntN(len(flying))
				b := flying[n]
				flying = append(flying[:n], flying[n+1:]...)
				if random.IntN(3) == 0 {
					q.giveBack(b)
					continue
				}
				for i := range b.records {
					stands[b.records[i].Offset] = true
				}
				q.finish(b)
				for len(offsets) > 0 && stands[offsets[0]] { // it has left the queue
					offsets = offsets[1:]
				}
			}
		}
	}
}

func slicesHas(records []domain.Record, offset int64) bool {
	return slices.ContainsFunc(records, func(r domain.Record) bool { return r.Offset == offset })
}

// handPositions hands every write to the test, which says what becomes of it.
type handPositions struct{ writes chan handWrite }

type handWrite struct {
	at      domain.Position
	back    bool
	outcome chan error
}

func (h *handPositions) Take(context.Context, string, string, int32) (domain.Position, error) {
	return domain.Position{}, errors.New("a lane does not take")
}

func (h *handPositions) Move(ctx context.Context, at domain.Position) error {
	return h.write(ctx, at, false)
}

func (h *handPositions) Rewind(ctx context.Context, at domain.Position) error {
	return h.write(ctx, at, true)
}

func (h *handPositions) write(ctx context.Context, at domain.Position, back bool) error {
	w := handWrite{at: at, back: back, outcome: make(chan error, 1)}
	select {
	case h.writes <- w:
		return <-w.outcome
	case <-ctx.Done():
		return ctx.Err()
	}
}

// expect waits for the next write aside and ends it.
func (h *handPositions) expect(t *testing.T, next int64, back bool, outcome error) {
	t.Helper()
	select {
	case w := <-h.writes:
		require.Equal(t, next, w.at.Next)
		require.Equal(t, back, w.back)
		w.outcome <- outcome
	case <-time.After(soon):
		require.FailNow(t, "no position was written", "%d", next)
	}
}

func (h *handPositions) none(t *testing.T, why string) {
	t.Helper()
	select {
	case w := <-h.writes:
		require.Failf(t, "written", "%+v: %s", w.at, why)
	case <-time.After(60 * time.Millisecond):
	}
}

// setupKept starts a lane that keeps its position in a book.
func setupKept(t *testing.T, slots int, taken int64) (*laneBundle, *handPositions) {
	t.Helper()
	return setupTrailing(t, slots, taken, 10*time.Millisecond)
}

// setupTrailing is setupKept with a pause before a lane that is idle has the book catch up.
func setupTrailing(t *testing.T, slots int, taken int64, after time.Duration) (*laneBundle, *handPositions) {
	t.Helper()
	crew := setupCrew(t, slots)
	crew.cfg.CommitInterval = after
	book := &handPositions{writes: make(chan handWrite)}
	l := newLane(context.WithoutCancel(t.Context()), crew.crew, 0, nil)
	l.keep(book, domain.Position{Group: "g", Topic: "t", Next: taken, LeaderEpoch: domain.NoLeaderEpoch, Epoch: 7})
	go l.run()
	t.Cleanup(func() {
		crew.endAll()
		l.cancel()
		<-l.done
	})
	return &laneBundle{lane: l, biller: crew.biller, notes: crew.notes[0]}, book
}

// writes is what the batch's transaction writes as its position.
func (h *handed) writes(t *testing.T, want int64) {
	t.Helper()
	at, kept, err := h.pass.Position(t.Context(), h.records)
	require.NoError(t, err)
	require.True(t, kept)
	require.Equal(t, want, at.Next)
	require.EqualValues(t, 7, at.Epoch)
}

func TestABatchWritesItsOwnEndOnlyWhenNothingBeforeItIsOpen(t *testing.T) {
	t.Parallel()
	l, book := setupKept(t, 2, 10)
	l.fill(10, 11)
	first := l.biller.next(t, 10, 11)
	l.fill(12, 13)
	second := l.biller.next(t, 12, 13)
	second.writes(t, 10)
	second.end(nil)
	l.await(t, "the second has landed", func(p PartitionStatus) bool { return p.Batches == 1 })
	first.writes(t, 14)
	first.end(nil)
	l.noted(t, 14)
	book.none(t, "the first batch has written it all")
}

func TestAnIdleLaneHasTheBookCatchUp(t *testing.T) {
	t.Parallel()
	l, book := setupKept(t, 2, domain.NoOffset)
	l.fill(0)
	first := l.biller.next(t, 0)
	first.writes(t, 1)
	l.fill(1, 2)
	second := l.biller.next(t, 1, 2)
	second.writes(t, domain.NoOffset) // nothing is known to be committed
	first.end(nil)
	l.noted(t, 1)
	second.end(nil)
	l.noted(t, 3)
	book.expect(t, 3, false, errors.New("the database is away"))
	book.expect(t, 3, false, nil) // again
	book.none(t, "it stands")
	l.reachEnd(mark{offset: 5, epoch: noEpoch})
	book.expect(t, 5, false, nil)
}

func TestALaneThatEndsHasTheBookCatchUpAtOnce(t *testing.T) {
	t.Parallel()
	l, book := setupTrailing(t, 1, domain.NoOffset, time.Hour)
	l.fill(0)
	only := l.biller.next(t, 0)
	l.stop()
	only.end(nil) // and wrote no position
	book.expect(t, 1, false, nil)
	<-l.done
}

func TestALaneThatIsCancelledWritesNoPosition(t *testing.T) {
	t.Parallel()
	l, book := setupKept(t, 1, domain.NoOffset)
	l.fill(0)
	only := l.biller.next(t, 0)
	l.cancel()
	only.end(nil)
	<-l.done
	book.none(t, "its partition is somebody else's")
}

func TestAFencedLaneEnds(t *testing.T) {
	t.Parallel()
	for name, byBatch := range map[string]bool{"by a batch": true, "by a write aside": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, book := setupKept(t, 1, domain.NoOffset)
			l.fill(0)
			only := l.biller.next(t, 0)
			if byBatch {
				only.end(domain.ErrFenced)
			} else {
				only.end(nil)
				book.expect(t, 1, false, domain.ErrFenced)
			}
			<-l.done
			require.True(t, l.isFenced())
			l.fill(1)
			l.biller.none(t, "it is over")
		})
	}
}

func TestALogThatWentBackTakesThePositionWithItBeforeARecordIsBilled(t *testing.T) {
	t.Parallel()
	l, book := setupKept(t, 1, 100)
	l.fill(100)
	l.biller.next(t, 100).end(nil)
	l.noted(t, 101)
	book.expect(t, 101, false, nil)
	l.fill(3, 4) // the topic is a new one
	l.biller.none(t, "the book stands at 101 still")
	book.expect(t, 3, true, errors.New("the database is away"))
	l.biller.none(t, "nor now")
	book.expect(t, 3, true, nil)
	again := l.biller.next(t, 3, 4)
	again.writes(t, 5)
	again.end(nil)
	l.noted(t, 5)
	book.none(t, "the batch has written it")
}
