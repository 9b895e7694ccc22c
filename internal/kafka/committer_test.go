package kafka

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// offsetBook plays the client: it stores, and commits what is stored.
type offsetBook struct {
	mu        sync.Mutex
	stored    map[int32]int64
	epochs    map[int32]int32
	committed map[int32]int64
	commits   int
	notOurs   map[int32]bool
	refuse    error         // returned by the next commit
	hold      chan struct{} // a commit waits for it, when set
	entered   chan struct{} // told when a commit begins, when set
}

func newOffsetBook() *offsetBook {
	return &offsetBook{
		stored: map[int32]int64{}, epochs: map[int32]int32{}, committed: map[int32]int64{}, notOurs: map[int32]bool{},
	}
}

func (b *offsetBook) StoreOffsets(positions []confluent.TopicPartition) ([]confluent.TopicPartition, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, at := range positions {
		if b.notOurs[at.Partition] {
			positions[i].Error = confluent.NewError(confluent.ErrState, "Erroneous state", false)
			continue
		}
		b.stored[at.Partition] = int64(at.Offset)
		b.epochs[at.Partition] = epochOf(at)
	}
	return positions, nil
}

func (b *offsetBook) Commit() ([]confluent.TopicPartition, error) {
	if b.entered != nil {
		b.entered <- struct{}{}
	}
	if b.hold != nil {
		<-b.hold
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refuse; err != nil {
		b.refuse = nil
		return nil, err
	}
	b.commits++
	var taken []confluent.TopicPartition
	for partition, offset := range b.stored {
		b.committed[partition] = offset
		taken = append(taken, confluent.TopicPartition{Partition: partition, Offset: confluent.Offset(offset)})
	}
	if taken == nil {
		return nil, confluent.NewError(confluent.ErrNoOffset, "", false)
	}
	return taken, nil
}

func (b *offsetBook) committedAt(partition int32) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.committed[partition]
}

// testCommitter runs a committer until the test ends.
func testCommitter(t *testing.T, book *offsetBook, interval time.Duration) (*committer, *atomic.Int64) {
	t.Helper()
	var failed atomic.Int64
	c := newCommitter(book, "t", interval, slog.New(slog.DiscardHandler),
		func(context.Context) { failed.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return c, &failed
}

const soon = 10 * time.Second

func TestCommitter(t *testing.T) {
	t.Parallel()

	t.Run("commits what an owner notes, with its epoch", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		c, _ := testCommitter(t, book, time.Millisecond)
		l := &lane{partition: 2}
		c.own(l)
		require.Equal(t, unknown, c.committedOffset(2))
		c.note(l, mark{offset: 7, epoch: 3})
		require.Eventually(t, func() bool { return c.committedOffset(2) == 7 }, soon, time.Millisecond)
		require.EqualValues(t, 3, book.epochs[2])
		c.note(l, mark{offset: 9, epoch: noEpoch})
		require.Eventually(t, func() bool { return c.committedOffset(2) == 9 }, soon, time.Millisecond)
		require.Equal(t, noEpoch, book.epochs[2])
	})
	t.Run("ignores a lane that owns nothing, or nothing any more", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		c, _ := testCommitter(t, book, time.Hour)
		other := &lane{partition: 9}
		c.own(other)
		c.note(other, mark{offset: 1})
		require.Eventually(t, func() bool { return book.committedAt(9) == 1 }, soon, time.Millisecond)

		// It rests for an hour now: nothing but a flush commits.
		former, present := &lane{partition: 0}, &lane{partition: 0}
		c.note(former, mark{offset: 5})
		require.NoError(t, c.flush(t.Context()))
		require.NotContains(t, book.committed, int32(0), "it does not own the partition yet")
		c.own(former)
		c.note(former, mark{offset: 6})
		c.own(present)
		c.disown(former) // must not take the present one's right
		c.note(former, mark{offset: 9})
		c.note(present, mark{offset: 3})
		require.NoError(t, c.flush(t.Context()))
		require.EqualValues(t, 3, book.committedAt(0))
		c.note(present, mark{offset: 4})
		c.disown(present)
		require.NoError(t, c.flush(t.Context()))
		require.EqualValues(t, 3, book.committedAt(0), "what was noted but not flushed is dropped")
		c.note(present, mark{offset: 99})
		require.NoError(t, c.flush(t.Context()))
		require.EqualValues(t, 3, book.committedAt(0))
	})
	t.Run("keeps offsets when a commit fails and tries again", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		book.refuse = confluent.NewError(confluent.ErrRebalanceInProgress, "rebalance in progress", false)
		c, failed := testCommitter(t, book, time.Millisecond)
		l := &lane{partition: 0}
		c.own(l)
		c.note(l, mark{offset: 7})
		require.Eventually(t, func() bool { return book.committedAt(0) == 7 }, soon, time.Millisecond)
		require.EqualValues(t, 1, failed.Load())
	})
	t.Run("a partition that is not ours any more is no error and harms no other", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		book.notOurs[0] = true
		c, failed := testCommitter(t, book, time.Hour)
		gone, ours := &lane{partition: 0}, &lane{partition: 1}
		c.own(gone)
		c.own(ours)
		c.note(gone, mark{offset: 7})
		c.note(ours, mark{offset: 8})
		require.NoError(t, c.flush(t.Context()))
		require.Zero(t, book.committedAt(0))
		require.EqualValues(t, 8, book.committedAt(1))
		require.Zero(t, failed.Load())
	})
	t.Run("commits at most once per interval, and at once when told to", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		c, _ := testCommitter(t, book, time.Hour)
		l := &lane{partition: 0}
		c.own(l)
		c.note(l, mark{offset: 1})
		require.Eventually(t, func() bool { return book.committedAt(0) == 1 }, soon, time.Millisecond)
		for offset := range int64(100) {
			c.note(l, mark{offset: 2 + offset})
		}
		require.NoError(t, c.flush(t.Context()))
		require.EqualValues(t, 101, book.committedAt(0))
		require.Equal(t, 2, book.commits)
	})
	t.Run("a commit that hangs holds up neither notes nor a flush with a deadline", func(t *testing.T) {
		t.Parallel()
		book := newOffsetBook()
		book.hold, book.entered = make(chan struct{}), make(chan struct{}, 8)
		c, _ := testCommitter(t, book, time.Millisecond)
		t.Cleanup(func() { close(book.hold) })
		l := &lane{partition: 0}
		c.own(l)
		c.note(l, mark{offset: 1})
		<-book.entered
		c.note(l, mark{offset: 2})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.flush(ctx), context.DeadlineExceeded)
		c.disown(l)
	})
	t.Run("a code is found inside joined errors", func(t *testing.T) {
		t.Parallel()
		err := errors.Join(confluent.NewError(confluent.ErrState, "x", false))
		require.True(t, isCode(err, confluent.ErrState))
		require.False(t, isCode(err, confluent.ErrNoOffset))
		require.False(t, isCode(nil, confluent.ErrState))
	})
}

// stuckBook's first commit does not return until it is let go.
type stuckBook struct {
	*offsetBook
	stuck atomic.Bool
	let   chan struct{}
}

func (b *stuckBook) Commit() ([]confluent.TopicPartition, error) {
	if !b.stuck.Swap(true) {
		<-b.let
		return nil, confluent.NewError(confluent.ErrNoOffset, "", false)
	}
	return b.offsetBook.Commit()
}

func TestACommitThatDoesNotReturnHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	book := &stuckBook{offsetBook: newOffsetBook(), let: make(chan struct{})}
	var failed atomic.Int64
	c := newCommitter(book, "t", time.Millisecond, slog.New(slog.DiscardHandler), func(context.Context) { failed.Add(1) })
	c.patience = 200 * time.Millisecond // enough for the others, on a busy machine too
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	l := &lane{partition: 2}
	c.own(l)
	c.note(l, mark{offset: 7, epoch: noEpoch})
	require.Eventually(t, func() bool { return c.committedOffset(2) == 7 }, soon, time.Millisecond)
	require.EqualValues(t, 1, failed.Load())
	require.True(t, c.unanswered(), "closing the client under it would crash")
	cancel()
	running.Wait()
	close(book.let)
	require.Eventually(t, func() bool { return !c.unanswered() }, soon, time.Millisecond)
}

// Else a consumer that has committed and leaves would find its client in use, and leave it open: a
// member of the group that takes no records, for as long as the process lives.
func TestACommitIsNotOpenAnyMoreOnceItsAnswerIsThere(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	var all sync.WaitGroup
	for range 32 { // far more than processors, so that it is let go in between anywhere
		c := newCommitter(newOffsetBook(), "t", time.Millisecond, slog.New(slog.DiscardHandler), func(context.Context) {})
		l := &lane{partition: 2}
		c.own(l)
		all.Go(func() {
			for offset := range int64(2000) {
				c.note(l, mark{offset: offset, epoch: noEpoch})
				if c.commit(t.Context()) != nil || c.unanswered() {
					seen.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, seen.Load())
}

func TestACommitThatIsUnderWayAtTheEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	book := newOffsetBook()
	book.hold, book.entered = make(chan struct{}), make(chan struct{}, 1)
	c := newCommitter(book, "t", time.Millisecond, slog.New(slog.DiscardHandler), func(context.Context) {})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.run(ctx) })
	l := &lane{partition: 2}
	c.own(l)
	c.note(l, mark{offset: 7, epoch: noEpoch})
	<-book.entered
	cancel()
	running.Wait()
	require.True(t, c.unanswered())
	c.patience = time.Millisecond
	require.False(t, c.rest(), "no longer than for one commit")
	c.patience = soon
	time.AfterFunc(20*time.Millisecond, func() { close(book.hold) })
	require.True(t, c.rest())
	require.False(t, c.unanswered())
	require.EqualValues(t, 7, book.committedAt(2))
}

func TestCommitsThatDoNotReturnAreBounded(t *testing.T) {
	t.Parallel()
	book := newOffsetBook()
	book.hold, book.entered = make(chan struct{}), make(chan struct{}, 10*maxCommits)
	c := newCommitter(book, "t", time.Millisecond, slog.New(slog.DiscardHandler), func(context.Context) {})
	c.patience = time.Millisecond
	l := &lane{partition: 2}
	c.own(l)
	c.note(l, mark{offset: 7, epoch: noEpoch})
	for range maxCommits {
		require.ErrorContains(t, c.commit(t.Context()), "no answer within 1ms")
	}
	require.ErrorContains(t, c.commit(t.Context()), "16 commits have not returned")
	require.Eventually(t, func() bool { return len(book.entered) == maxCommits }, soon, time.Millisecond)
	close(book.hold)
	require.Eventually(t, func() bool { return !c.unanswered() }, soon, time.Millisecond)
	c.patience = soon
	require.NoError(t, c.commit(t.Context()))
	require.EqualValues(t, 7, book.committedAt(2))
}

// standing is told the points, and looks at the book there.
type standing func(domain.Point)

func (s standing) Hit(_ context.Context, at domain.Point) { s(at) }

func TestThePointBeforeAnOffsetCommitIsBeforeIt(t *testing.T) {
	t.Parallel()
	book := newOffsetBook()
	c := newCommitter(book, "t", time.Millisecond, slog.New(slog.DiscardHandler), func(context.Context) {})
	var reached []domain.Point
	var stored, committed int64
	c.faults = standing(func(at domain.Point) {
		reached = append(reached, at)
		stored, committed = book.stored[2], book.committedAt(2)
	})
	l := &lane{partition: 2}
	c.own(l)
	require.NoError(t, c.commit(t.Context()))
	require.Empty(t, reached, "there was nothing to commit")
	c.note(l, mark{offset: 7, epoch: noEpoch})
	require.NoError(t, c.commit(t.Context()))
	require.Equal(t, []domain.Point{domain.BeforeOffsetCommit}, reached)
	require.EqualValues(t, 7, stored)
	require.Zero(t, committed)
}

// Instances that join and leave are nothing to be warned of; a broker that refuses for other reasons is.
func TestACommitThatMeetsARebalanceIsNoWarning(t *testing.T) {
	t.Parallel()
	for code, level := range map[confluent.ErrorCode]string{
		confluent.ErrRebalanceInProgress: "level=INFO", confluent.ErrIllegalGeneration: "level=INFO",
		confluent.ErrUnknownMemberID: "level=WARN", confluent.ErrGroupAuthorizationFailed: "level=WARN",
	} {
		book := newOffsetBook()
		book.refuse = confluent.NewError(code, "refused", false)
		var log strings.Builder
		c := newCommitter(book, "t", time.Hour, slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) {})
		l := &lane{partition: 0}
		c.own(l)
		c.note(l, mark{offset: 7})
		require.True(t, isCode(c.commit(t.Context()), code))
		require.Contains(t, log.String(), level, "%v", code)
		require.NoError(t, c.commit(t.Context()))
		require.EqualValues(t, 7, book.committedAt(0), "kept, and tried again")
	}
}
