package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// commitRetry is how long a commit that failed waits before it is tried again.
// During a rebalance failing is normal: the offsets are kept and go later.
const commitRetry = 500 * time.Millisecond

const (
	// commitTimeout is how long a commit is waited for. The client's own call has no
	// deadline. Commits go over the connection that the member joins on: a coordinator that
	// owes it an answer there answers none of them, for up to max.poll.interval.ms.
	commitTimeout = 3 * time.Second
	// maxCommits bounds the commits that have not returned, each of which holds a thread.
	maxCommits = 16
)

// offsets is the part of the client that the committer uses. StoreOffsets is
// fenced by ownership in the client, CommitOffsets is not: hence the pair.
type offsets interface {
	StoreOffsets(positions []confluent.TopicPartition) ([]confluent.TopicPartition, error)
	Commit() ([]confluent.TopicPartition, error)
}

// committer takes durable positions from the lanes and commits them: at once
// when idle, else at most every interval. Only it touches offsets.
type committer struct {
	client   offsets
	topic    string
	interval time.Duration
	logger   *slog.Logger
	faults   domain.Faults
	failed   func(context.Context) // counts a failed commit
	patience time.Duration         // with one commit
	open     atomic.Int64          // commits that have not returned
	calls    sync.WaitGroup        // likewise

	wake    chan struct{}   // holds one token while there is something to commit
	flushes chan chan error // requests to commit now

	mu        sync.Mutex
	owners    map[int32]*lane
	pending   map[int32]mark // durable, not stored in the client yet
	dirty     bool           // stored in the client, not committed yet
	committed map[int32]int64
}

func newCommitter(client offsets, topic string, interval time.Duration, logger *slog.Logger,
	failed func(context.Context),
) *committer {
	return &committer{
		client: client, topic: topic, interval: interval, logger: logger, failed: failed, patience: commitTimeout,
		wake: make(chan struct{}, 1), flushes: make(chan chan error),
		owners: map[int32]*lane{}, pending: map[int32]mark{}, committed: map[int32]int64{},
	}
}

// own makes the lane the only one whose positions of its partition count.
func (c *committer) own(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners[l.partition] = l
}

// disown ends a lane's right to commit: whatever it notes from now on, and what it
// has noted but not flushed, is dropped. Nothing of it is stored once disown has returned.
func (c *committer) disown(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners[l.partition] == l {
		delete(c.owners, l.partition)
		delete(c.pending, l.partition)
		delete(c.committed, l.partition)
	}
}

// note takes the lane's new position: everything below it is durable.
func (c *committer) note(l *lane, position mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners[l.partition] != l {
		return
	}
	c.pending[l.partition] = position
	c.nudge()
}

// committedOffset returns what the lane has committed, unknown when it has not yet.
func (c *committer) committedOffset(partition int32) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset, ok := c.committed[partition]; ok {
		return offset
	}
	return unknown
}

func (c *committer) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// flush commits what was noted so far. It returns when that is done or ctx is:
// the client's own commit has no deadline, so the wait for it needs one.
func (c *committer) flush(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case c.flushes <- reply:
	case <-ctx.Done():
		return fmt.Errorf("commit offsets: %w", ctx.Err())
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("commit offsets: %w", ctx.Err())
	}
}

// run commits until ctx is done; it does not flush by itself then.
func (c *committer) run(ctx context.Context) {
	resting := time.NewTimer(0)
	defer resting.Stop()
	wake := (chan struct{})(nil) // nil while resting
	for {
		select {
		case <-ctx.Done():
			return
		case <-resting.C:
			wake = c.wake
		case reply := <-c.flushes:
			reply <- c.commit(ctx)
		case <-wake:
			wake = nil
			pause := c.interval
			if err := c.commit(ctx); err != nil {
				pause = max(pause, commitRetry)
			}
			resting.Reset(pause)
		}
	}
}

// commit stores what is pending and commits what is stored. On an error
// everything is kept for the next time.
func (c *committer) commit(ctx context.Context) error {
	err := c.store()
	if err == nil {
		err = c.send(ctx)
	}
	if err != nil {
		c.nudge()
		c.failed(ctx)
		level := slog.LevelWarn
		if rebalances(err) {
			level = slog.LevelInfo
		}
		c.logger.Log(ctx, level, "commit offsets; they are kept and tried again", "error", err)
	}
	return err
}

// rebalances reports whether a commit was refused because the group is on its way to the next assignment, as at any join: what
// is still ours then goes with it.
func rebalances(err error) bool {
	return isCode(err, confluent.ErrRebalanceInProgress) || isCode(err, confluent.ErrIllegalGeneration)
}

// store hands pending positions to the client. The lock is held over it (the call is
// local and quick), so that no position outlives its lane's ownership.
func (c *committer) store() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return nil
	}
	positions := make([]confluent.TopicPartition, 0, len(c.pending))
	for partition, position := range c.pending {
		at := confluent.TopicPartition{
			Topic: &c.topic, Partition: partition, Offset: confluent.Offset(position.offset),
		}
		if position.epoch != noEpoch {
			at.LeaderEpoch = &position.epoch
		}
		positions = append(positions, at)
	}
	stored, err := c.client.StoreOffsets(positions)
	if err != nil && len(stored) != len(positions) {
		return fmt.Errorf("store: %w", err)
	}
	var refused error
	for _, at := range stored {
		switch {
		case at.Error == nil:
			c.dirty = true
			delete(c.pending, at.Partition)
		case isCode(at.Error, confluent.ErrState), isCode(at.Error, confluent.ErrUnknownPartition):
			// Not ours any more; its next owner runs the records again.
			delete(c.pending, at.Partition)
		default:
			refused = fmt.Errorf("store %s/%d: %w", c.topic, at.Partition, at.Error)
		}
	}
	return refused
}

// send commits what the client has stored. One that does not return in time counts as
// failed; what the broker took is remembered all the same when it does.
func (c *committer) send(ctx context.Context) error {
	c.mu.Lock()
	dirty := c.dirty
	c.dirty = false // what is stored while the broker is asked makes it dirty again
	c.mu.Unlock()
	if !dirty {
		return nil
	}
	if c.open.Add(1) > maxCommits {
		c.open.Add(-1)
		return c.again(fmt.Errorf("%d commits have not returned", maxCommits))
	}
	domain.Reach(ctx, c.faults, domain.BeforeOffsetCommit)
	answered := make(chan error, 1)
	c.calls.Go(func() { // ends with the client's call
		err := c.took(c.client.Commit())
		c.open.Add(-1) // before its answer: whoever has that may look at once whether one is open
		answered <- err
	})
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case err := <-answered:
		return err
	case <-timer.C:
		return c.again(fmt.Errorf("no answer within %s", c.patience))
	case <-ctx.Done():
		return c.again(ctx.Err())
	}
}

// again keeps what is stored for the next commit.
func (c *committer) again(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = true
	return err
}

// unanswered reports whether a commit has not returned: the client must not be closed
// under it.
func (c *committer) unanswered() bool { return c.open.Load() > 0 }

// rest waits for the commits that have not returned, no longer than for one. To be called when
// run has ended, which does not wait for the commit that it is in. It reports whether all have.
func (c *committer) rest() bool { return !c.unanswered() || within(c.patience, c.calls.Wait) }

// took remembers what the broker took of a commit.
func (c *committer) took(taken []confluent.TopicPartition, err error) error {
	if isCode(err, confluent.ErrNoOffset) {
		return nil // all of it is committed already, or not ours any more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range taken {
		if at.Error != nil {
			err = errors.Join(err, fmt.Errorf("%s/%d: %w", c.topic, at.Partition, at.Error))
		} else if _, ours := c.owners[at.Partition]; ours && at.Offset >= 0 && err == nil {
			c.committed[at.Partition] = int64(at.Offset)
		}
	}
	if err != nil {
		c.dirty = true
	}
	return err
}

func isCode(err error, code confluent.ErrorCode) bool {
	var known confluent.Error
	return errors.As(err, &known) && known.Code() == code
}
