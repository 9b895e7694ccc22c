package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/billing/internal/domain"
)

const (
	// firstRetry and lastRetry bound the pause, doubling and jittered, before a
	// batch that failed is run again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// complainEvery is the least time between two log lines about the same lane's failing batch.
	complainEvery = 10 * time.Second
)

// crew is what all lanes of a consumer share.
type crew struct {
	cfg     Config
	biller  Biller
	slots   chan struct{} // one token per batch in flight
	note    func(*lane, mark)
	metrics *telemetry
	clock   domain.Clock
	logger  *slog.Logger
}

// lane makes the records of one assigned partition durable, in order, one batch
// in flight. The poll loop fills it; its own goroutine empties it.
type lane struct {
	*crew
	partition int32
	earlier   *lane // of the same partition, may still be running; nil: none

	// intake ends when no more batches may begin; work ends when a batch in
	// flight has to give up what it has not called yet.
	intake    context.Context
	endIntake context.CancelFunc
	work      context.Context
	endWork   context.CancelFunc

	arrived chan struct{} // holds a token when records may wait
	done    chan struct{} // closed when the goroutine has ended

	mu        sync.Mutex
	queue     queue
	marks     watermark
	end       *mark // end of the partition, behind everything queued
	position  int64 // next offset to be committed; unknown until seen
	high      int64 // high watermark as last heard; unknown until then
	inFlight  int
	state     State
	failures  int // of the batch at the head, in a row
	lastError string
	complain  time.Time // when a failure was logged last
}

// newLane returns a lane that is not running yet. Its contexts hang on ctx, which
// must outlive the poll loop: stopping is the lane's own matter.
func newLane(ctx context.Context, shared *crew, partition int32, earlier *lane) *lane {
	work, endWork := context.WithCancel(ctx)
	intake, endIntake := context.WithCancel(work)
	return &lane{
		crew: shared, partition: partition, earlier: earlier,
		intake: intake, endIntake: endIntake, work: work, endWork: endWork,
		arrived: make(chan struct{}, 1), done: make(chan struct{}),
		queue:    queue{maxRecords: shared.cfg.LaneRecords, maxBytes: shared.cfg.LaneBytes},
		position: unknown, high: unknown, state: Idle,
	}
}

// push queues a record and reports whether the lane is full now.
func (l *lane) push(arrived item) (full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.position == unknown {
		l.position = arrived.record.Offset
	}
	l.end = nil // there is something behind it after all
	l.queue.push(arrived)
	l.ring()
	return l.queue.full()
}

// reachEnd takes the end of the partition: there is nothing below it that
// was not pushed. Behind the last record there may be control records of transactions.
func (l *lane) reachEnd(end mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = &end
	l.pass()
}

// pass moves the position to the end of the partition once everything before
// it is durable. The lock is held.
func (l *lane) pass() {
	if l.end == nil || len(l.queue.items) > 0 {
		return
	}
	span := l.marks.begin(*l.end)
	l.end = nil
	l.settle(span)
}

// settle marks a span durable and tells the committer how far that reaches.
// The lock is held.
func (l *lane) settle(finished *span) {
	if position, moved := l.marks.finish(finished); moved {
		l.position = position.offset
		l.note(l, position)
	}
}

// hear takes the end of the partition as its broker tells it; negative: unknown.
func (l *lane) hear(high int64) {
	if high < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.high = high
}

func (l *lane) roomy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.roomy()
}

func (l *lane) ring() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// stop lets the batch in flight finish and takes no other.
func (l *lane) stop() { l.endIntake() }

// cancel also makes the batch in flight give up what it has not called yet.
func (l *lane) cancel() { l.endWork() }

// run bills batch by batch until the lane is stopped.
func (l *lane) run() {
	defer close(l.done)
	defer l.endWork()
	if l.earlier != nil {
		// Two lanes of one partition would wait for each other in the database.
		select {
		case <-l.earlier.done:
		case <-l.intake.Done():
			return
		}
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = firstRetry, lastRetry, 2
	retry := 0 // records of the batch that failed: the same ones are run again
	for l.await() {
		tried, err := l.next(retry)
		if l.intake.Err() != nil {
			return
		}
		if err == nil {
			retry = 0
			pauses.Reset()
			continue
		}
		if tried > 0 {
			retry = tried
		}
		l.pause(pauses.NextBackOff(), err)
	}
}

// await blocks until a record waits; false means the lane is stopped.
func (l *lane) await() bool {
	for l.intake.Err() == nil {
		l.mu.Lock()
		waiting := len(l.queue.items) > 0
		if !waiting {
			l.state = Idle
		}
		l.mu.Unlock()
		if waiting {
			return true
		}
		select {
		case <-l.arrived:
		case <-l.intake.Done():
		}
	}
	return false
}

// next takes a slot and a pass, in this order so that the pass is fresh when it
// is used, and bills the head of the queue: the records that failed before, or
// else what waits. It returns how many records it tried.
func (l *lane) next(retry int) (tried int, err error) {
	l.setState(Waiting)
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-l.intake.Done():
		return 0, l.intake.Err()
	}
	pass, err := l.biller.Admit(l.intake)
	if err != nil {
		return 0, err
	}
	limit := l.cfg.BatchMax
	if retry > 0 {
		limit = min(limit, retry)
	}
	return l.bill(pass, max(1, pass.Limit(limit)))
}

// bill runs one batch, at most limit records, and settles it.
func (l *lane) bill(pass domain.Pass, limit int) (int, error) {
	l.mu.Lock()
	records, end := l.queue.head(limit)
	span := l.marks.begin(end)
	l.inFlight, l.state = len(records), Billing
	l.mu.Unlock()

	err := l.metrics.batch(l.work, l.clock, records, func(ctx context.Context) error {
		return l.biller.Bill(ctx, pass, records)
	})

	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = 0
	if err != nil {
		l.marks.abandon(span)
		return len(records), err
	}
	l.failures, l.lastError = 0, ""
	l.queue.drop(len(records))
	l.settle(span)
	l.pass()
	return len(records), nil
}

// pause waits before the batch is run again, and says why now and then.
func (l *lane) pause(wait time.Duration, cause error) {
	now := l.clock.Now()
	l.mu.Lock()
	l.state, l.lastError = Retrying, cause.Error()
	l.failures++
	failures := l.failures
	speak := failures == 1 || now.Sub(l.complain) >= complainEvery
	if speak {
		l.complain = now
	}
	l.mu.Unlock()
	if speak {
		l.logger.WarnContext(l.work, "batch failed; nothing of it is committed, it is run again",
			"partition", l.partition, "failures", failures, "error", cause)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.intake.Done():
	}
}

func (l *lane) setState(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}
