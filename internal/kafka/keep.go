package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/billing/internal/domain"
)

const (
	// keepTimeout bounds one try to write a position aside of a batch.
	keepTimeout = 5 * time.Second
	// lastKeep bounds how long a lane that ends waits for its position to be written. To
	// do without costs no more than redeliveries.
	lastKeep = 2 * time.Second
)

// Positions keep the positions of partitions outside of Kafka: in the database that
// the records are made durable in.
type Positions interface {
	// Take raises the epoch of a partition, so that whoever had it before writes
	// nothing any more, and returns its position.
	Take(ctx context.Context, group, topic string, partition int32) (domain.Position, error)
	// Move writes a position, which never goes back by it, in a transaction of its own.
	// domain.ErrFenced: the epoch is not the partition's any more.
	Move(ctx context.Context, at domain.Position) error
	// Rewind is Move where the log itself has gone back, and the position with it.
	Rewind(ctx context.Context, at domain.Position) error
}

// keeper has a lane's position kept in the book: each batch writes it in its own
// transaction, and what such writes have left behind follows when the lane falls
// idle. It is the lane's goroutine's but for its channels.
type keeper struct {
	book  Positions       // nil: Kafka alone keeps it, and nothing here is used
	taken domain.Position // the partition, and the epoch it is ours by

	asks  chan question  // batches that are about to commit
	wrote chan keptWrite // what became of the write aside
	due   <-chan time.Time
	timer *time.Timer // runs while the lane is idle and the book is behind

	ticking bool  // the timer runs
	busy    bool  // a write aside is under way
	back    bool  // it takes the position back, and no record is taken meanwhile
	stands  int64 // committed in the book
	told    int64 // the greatest that the book may hold, whatever became of the write
}

// question is that of a batch: what is the position once its records up to this
// offset are durable?
type question struct {
	batch  *batch
	last   int64
	answer chan domain.Position
}

type keptWrite struct {
	to  mark
	err error
}

// keep makes the lane keep its position in the book. To be called before it runs.
func (l *lane) keep(book Positions, taken domain.Position) {
	timer := stoppedTimer()
	l.kept = keeper{
		book: book, taken: taken, asks: make(chan question), wrote: make(chan keptWrite, 1),
		due: timer.C, timer: timer, stands: taken.Next, told: taken.Next,
	}
	l.shown.moved = mark{offset: taken.Next, epoch: taken.LeaderEpoch}
}

func (k *keeper) position(to mark) domain.Position {
	at := k.taken
	at.Next, at.LeaderEpoch = to.offset, to.epoch
	return at
}

// keeping lets the batch's transaction write the position too.
func (l *lane) keeping(b *batch, pass domain.Pass) domain.Pass {
	if l.kept.book == nil {
		return pass
	}
	return pass.Keeping(func(ctx context.Context, records []domain.Record) (domain.Position, error) {
		asked := question{batch: b, last: records[len(records)-1].Offset, answer: make(chan domain.Position, 1)}
		select {
		case l.kept.asks <- asked: // the lane outlives its batches, and is never away for long
			return <-asked.answer, nil
		case <-ctx.Done():
			return domain.Position{}, ctx.Err()
		}
	})
}

// answer tells a batch the position to write. Where records before its own are not
// durable, or not known to be, it is the one that is known without it.
func (l *lane) answer(asked question) {
	to, some := l.own.queue.prefix(asked.batch, asked.last)
	if !some {
		to = l.movedTo()
	}
	l.kept.told = max(l.kept.told, to.offset)
	asked.batch.told = to.offset
	asked.answer <- l.kept.position(to)
}

func (l *lane) movedTo() mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown.moved
}

// keptBy takes what the end of a batch says about the position in the book.
func (l *lane) keptBy(b *batch) {
	switch {
	case l.kept.book == nil:
	case b.err == nil:
		l.kept.stands = max(l.kept.stands, b.told)
	case errors.Is(b.err, domain.ErrFenced):
		l.fence(b.err)
	}
}

// fence ends a lane whose partition was taken by somebody else: whatever it still
// does stands nowhere. It is told once.
func (l *lane) fence(cause error) {
	l.mu.Lock()
	told := l.shown.fenced
	l.shown.fenced, l.shown.lastError = true, cause.Error()
	l.mu.Unlock()
	if !told {
		l.logger.Error("fenced: the partition was taken by somebody else; nothing of what is in flight stands",
			"partition", l.partition, "epoch", l.kept.taken.Epoch, "error", cause)
	}
	l.cancel()
}

func (l *lane) isFenced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown.fenced
}

// trail has the book catch up soon when the lane is idle.
func (l *lane) trail() {
	k := &l.kept
	if k.book == nil || k.busy || k.ticking || l.own.flying > 0 || l.movedTo().offset <= k.stands {
		return
	}
	k.timer.Reset(l.cfg.CommitInterval)
	k.ticking = true
}

// catchUp writes what trail has found the book to lack.
func (l *lane) catchUp() {
	l.kept.ticking = false
	if to := l.movedTo(); !l.kept.busy && to.offset > l.kept.stands {
		l.writeAside(l.kept.book.Move, to)
	}
}

// writeAside writes the position in a transaction of its own, again and again until that
// succeeds or the lane's work ends.
func (l *lane) writeAside(write func(context.Context, domain.Position) error, to mark) {
	k := &l.kept
	k.busy, k.told = true, max(k.told, to.offset)
	at := k.position(to)
	go func() { // ends with the lane's work at the latest
		_, err := backoff.Retry(l.work, func() (struct{}, error) {
			ctx, cancel := context.WithTimeout(l.work, keepTimeout)
			defer cancel()
			err := write(ctx, at)
			if errors.Is(err, domain.ErrFenced) {
				err = backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(newPauses()), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
			l.logger.Warn("write a position; it is tried again", "partition", l.partition, "offset", to.offset, "error", err)
		}))
		k.wrote <- keptWrite{to: to, err: err}
	}()
}

// written takes what became of the write aside.
func (l *lane) written(done keptWrite) {
	k := &l.kept
	k.busy = false
	switch {
	case done.err == nil && k.back:
		k.back, k.stands, k.told = false, done.to.offset, done.to.offset
	case done.err == nil:
		k.stands = max(k.stands, done.to.offset)
	case errors.Is(done.err, domain.ErrFenced):
		l.fence(done.err)
	}
}

// goesBack reports whether the record lies before what the book may hold: the log was
// cut back, or the client has delivered it twice.
func (l *lane) goesBack(next *item) bool {
	return l.kept.book != nil && l.own.queue.len() == 0 && next.record.Offset < l.kept.told
}

// goBack has the book follow the log. No record is taken until it has: a batch moves it
// forward only, and what lies between would be skipped by whoever has the partition next.
func (l *lane) goBack(next *item) {
	k := &l.kept
	if k.busy {
		return // it comes again when that has ended
	}
	to := mark{offset: next.record.Offset, epoch: noEpoch}
	l.logger.Warn("a record from before the position: the log has gone back, or it came twice; the position follows",
		"partition", l.partition, "from", k.told, "to", to.offset)
	l.mu.Lock()
	l.shown.moved = to
	l.mu.Unlock()
	k.back = true
	l.writeAside(k.book.Rewind, to)
}

// keepLast writes the position of a lane that ends.
func (l *lane) keepLast() {
	k := &l.kept
	if k.book == nil {
		return
	}
	k.timer.Stop()
	limit := time.NewTimer(lastKeep)
	defer limit.Stop()
	for {
		if !k.busy {
			to := l.movedTo()
			if to.offset <= k.stands || l.work.Err() != nil {
				return
			}
			l.writeAside(k.book.Move, to)
		}
		select {
		case done := <-k.wrote:
			l.written(done)
		case <-limit.C:
			l.logger.Warn("the last position was not written in time; records behind it come again",
				"partition", l.partition, "within", lastKeep)
			return
		case <-l.work.Done():
			return
		}
	}
}
