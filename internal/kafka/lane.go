package kafka

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/billing/internal/domain"
)

// crew is what all lanes of a consumer share.
type crew struct {
	cfg     Config
	biller  Biller
	slots   chan struct{} // one token per batch in flight; who waits longest is next
	flights *flights
	brake   brake
	note    func(*lane, mark)
	metrics *telemetry
	clock   domain.Clock
	logger  *slog.Logger
}

// lane makes the records of one assigned partition durable, several batches at a
// time. The poll loop fills its inbox; its own goroutine does everything else.
type lane struct {
	*crew
	partition int32
	earlier   *lane // of the same partition, may still be running; nil: none

	// intake ends when no more batches may begin; work ends when the batches in
	// flight have to give up what they have not called yet.
	intake    context.Context
	endIntake context.CancelFunc
	work      context.Context
	endWork   context.CancelFunc

	arrived  chan struct{}  // holds a token when the inbox is worth a look
	freed    chan struct{}  // holds a token when records passed over may go
	admitted chan admission // what seek has brought
	landed   chan *batch    // batches that have ended
	done     chan struct{}  // closed when the goroutine has ended

	own  laneOwn // the goroutine's
	kept keeper  // likewise; nothing where Kafka alone keeps the position

	mu     sync.Mutex // guards what follows
	inbox  []item
	listen int // how many records in the inbox are worth a look
	load   load
	shown  laneShown
}

// laneOwn is what a lane's goroutine works with.
type laneOwn struct {
	queue   queue
	backlog []item // taken from the inbox
	fed     int    // of the backlog, into the queue
	flying  int    // batches
	seeking bool   // for a slot and a pass

	linger  *time.Timer // runs while records wait beside batches in flight
	ticking bool        // it runs
	pressed bool        // it has run out: they have waited long enough

	retry    *time.Timer // runs out when the pause after a failure is over
	pausing  bool        // it runs
	pauses   *backoff.ExponentialBackOff
	setbacks int // pauses so far
	failures int // of these since a success
	limit    int // records of the batch that failed last; 0: none has since a success
}

// laneShown is what a lane shows of its goroutine's doings.
type laneShown struct {
	durable   int   // records that are durable behind one that is not
	batches   int   // in flight
	inFlight  int   // records of these
	end       *mark // end of the partition, behind everything held
	position  int64 // next offset to be committed; unknown until seen
	moved     mark  // that far all is durable; as taken from the book, or unknown, until something is
	fenced    bool  // the partition was taken by somebody else
	high      int64 // high watermark as last heard; unknown until then
	pausing   bool
	failures  int // tries in a row
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
		arrived: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		admitted: make(chan admission, 1), landed: make(chan *batch, maxBatches),
		done:   make(chan struct{}),
		listen: 1,
		load:   load{maxRecords: shared.cfg.LaneRecords, maxBytes: shared.cfg.LaneBytes},
		shown:  laneShown{position: unknown, high: unknown, moved: mark{offset: unknown, epoch: noEpoch}},
	}
}

// push takes a record in and reports whether the lane is full now.
func (l *lane) push(arrived item) (full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown.position == unknown {
		l.shown.position = arrived.record.Offset
	}
	l.shown.end = nil // there is something behind it after all
	l.inbox = append(l.inbox, arrived)
	l.load.add(arrived.bytes)
	if len(l.inbox) >= l.listen {
		ring(l.arrived)
	}
	return l.load.full()
}

// reachEnd takes the end of the partition: there is nothing below it that
// was not pushed. Behind the last record there may be control records of transactions.
func (l *lane) reachEnd(end mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.end = &end
	l.pass()
	ring(l.arrived) // the position may be all there is to do
}

// pass moves the position to the end of the partition once everything before
// it is durable. The lock is held.
func (l *lane) pass() {
	if l.shown.end == nil || l.load.records > 0 {
		return
	}
	l.move(*l.shown.end)
	l.shown.end = nil
}

// move tells the committer how far everything is durable. The lock is held.
func (l *lane) move(position mark) {
	l.shown.position, l.shown.moved = position.offset, position
	l.note(l, position)
}

// hear takes the end of the partition as its broker tells it; negative: unknown.
func (l *lane) hear(high int64) {
	if high < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.high = high
}

func (l *lane) roomy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load.roomy()
}

// ring leaves a token in a channel that holds one.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// stop takes no more records: the batches in flight finish, and what they have overtaken.
func (l *lane) stop() { l.endIntake() }

// cancel also makes the batches in flight give up what they have not called yet.
func (l *lane) cancel() { l.endWork() }

// run bills batch after batch until the lane is stopped and none is in flight.
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
	own := &l.own
	l.prepare()
	defer own.linger.Stop()
	defer own.retry.Stop()
	for l.intake.Err() == nil {
		l.feed()
		l.begin()
		l.trail()
		l.await()
	}
	if own.seeking {
		l.launch(<-l.admitted)
	}
	l.windUp()
	l.keepLast()
}

// prepare makes the timers of a lane, none of which runs yet.
func (l *lane) prepare() {
	own := &l.own
	own.pauses = newPauses()
	own.linger, own.retry = stoppedTimer(), stoppedTimer()
}

// await takes the next thing that happens to the lane.
func (l *lane) await() {
	own := &l.own
	select {
	case <-l.arrived:
	case <-l.freed:
		own.queue.release()
	case brought := <-l.admitted:
		l.feed() // the batch is what waits by now
		l.launch(brought)
	case ended := <-l.landed:
		l.land(ended)
	case <-own.linger.C:
		own.ticking, own.pressed = false, true
	case <-own.retry.C:
		l.setPausing(false)
	case asked := <-l.kept.asks:
		l.answer(asked)
	case done := <-l.kept.wrote:
		l.written(done)
	case <-l.kept.due:
		l.catchUp()
	case <-l.intake.Done():
	}
}

// newPauses returns the pauses between tries of one thing.
func newPauses() *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = firstRetry, lastRetry, 2
	return pauses
}

func stoppedTimer() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}
