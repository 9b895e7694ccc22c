package kafka

import (
	"context"
	"time"

	"example.com/billing/internal/domain"
)

const (
	// maxBatches bounds the batches of one lane in flight: enough to fill MaxTransactions
	// with two or three busy lanes, and no more than a lane's records make.
	maxBatches = 8
	// lingerFor is how long a record waits beside batches in flight before a small
	// batch begins: as long as a round trip of a fast provider with its commits takes, after which
	// the lane is free anyway, and far below that of a slow one.
	lingerFor = 5 * time.Millisecond
	// firstRetry and lastRetry bound the pause, doubling and jittered, before the
	// records of a batch that failed are tried again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// complainEvery is the least time between two log lines about the same lane's failing batches.
	complainEvery = 10 * time.Second
)

// worthwhile is how many records make another batch worth its transaction while
// others are in flight: a quarter of a full one pays for most of the commit.
func (c *crew) worthwhile() int { return max(1, c.cfg.BatchMax/4) }

// feed moves what has arrived into the queue, at most one batch at a time so that
// nothing else waits for long, and looks once into each record for its keys.
func (l *lane) feed() {
	own := &l.own
	if own.fed == len(own.backlog) {
		clear(own.backlog)
		if cap(own.backlog) > keepItems {
			own.backlog = nil
		}
		l.mu.Lock()
		own.backlog, l.inbox = l.inbox, own.backlog[:0]
		l.mu.Unlock()
		own.fed = 0
	}
	for range min(l.cfg.BatchMax, len(own.backlog)-own.fed) {
		next := &own.backlog[own.fed]
		if !own.queue.follows(next) {
			return // until the queue is empty
		}
		if l.goesBack(next) {
			l.goBack(next)
			return // until the book has followed
		}
		next.event, next.order, next.keyed = l.biller.Keys(&next.record)
		own.queue.push(*next)
		own.fed++
	}
}

// unfed reports whether more may be fed, given that a look at the inbox is worth it at
// so many records. The lock is held.
func (l *lane) unfed(listen int) bool {
	own := &l.own
	if own.fed < len(own.backlog) {
		next := &own.backlog[own.fed]
		return own.queue.follows(next) && !l.goesBack(next)
	}
	return len(l.inbox) >= listen
}

// begin asks for another batch if it is time for one, and says what to be woken for.
// The first one begins at once, whatever waits. Further ones are to be big, or
// the batches of a busy lane would shrink to what arrives between two commits; but
// behind a slow provider a few records must not wait for a whole round trip.
func (l *lane) begin() {
	own := &l.own
	listen := l.worthwhile()
	switch {
	case own.seeking, own.pausing, own.flying >= maxBatches, own.failures > 0 && own.flying > 0:
		// Something of our own has to end first.
	case own.queue.waiting == 0:
		listen = 1
	case own.flying == 0, own.queue.waiting >= l.worthwhile():
		l.seek(false)
	case own.pressed:
		own.pressed = false
		select {
		case l.slots <- struct{}{}: // a small batch takes only what nobody waits for
			l.seek(true)
		default:
			l.tick()
		}
	default:
		listen -= own.queue.waiting
		l.tick()
	}
	l.hark(listen)
}

// tick has what waits now looked at again after lingerFor.
func (l *lane) tick() {
	if own := &l.own; !own.ticking {
		own.linger.Reset(lingerFor)
		own.ticking = true
	}
}

// hark sets for how many new records the lane wakes up.
func (l *lane) hark(listen int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listen = listen
	if l.unfed(listen) {
		ring(l.arrived)
	}
}

// admission is the permission to begin a batch: a slot, and a pass. On an
// error there is neither.
type admission struct {
	pass domain.Pass
	err  error
}

// seek waits for a slot, unless the lane has one, and for a pass, in this order so that the pass
// is fresh when it is used. It does so aside: the lane has batches to land meanwhile, and
// keeps its turn among the lanes.
func (l *lane) seek(hasSlot bool) {
	l.own.seeking = true
	go func() { // ends with intake at the latest; run takes what it brings
		l.admitted <- l.seekUnbraked(l.intake, hasSlot)
	}()
}

func (l *lane) admit(ctx context.Context, hasSlot bool) admission {
	if !hasSlot {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return admission{err: ctx.Err()}
		}
	}
	pass, err := l.biller.Admit(ctx)
	if err != nil {
		<-l.slots
	}
	return admission{pass: pass, err: err}
}

// launch begins a batch with what seek has brought.
func (l *lane) launch(brought admission) {
	l.own.seeking = false
	switch {
	case brought.err != nil:
		l.setBack(0, brought.err)
	case l.intake.Err() != nil:
		<-l.slots
	default:
		l.lift(brought.pass)
	}
}

// lift begins a batch with what may go now. The lane has a slot for it.
func (l *lane) lift(pass domain.Pass) {
	own := &l.own
	limit := l.cfg.BatchMax
	if own.limit > 0 {
		limit = min(limit, own.limit)
	}
	limit = max(1, pass.Limit(limit))
	b := &batch{lane: l, setbacks: own.setbacks, records: make([]domain.Record, 0, min(limit, own.queue.waiting))}
	l.flights.board(b, &own.queue, limit)
	own.linger.Stop()
	own.ticking, own.pressed = false, false
	if len(b.records) == 0 {
		<-l.slots
		return
	}
	own.flying++
	l.mu.Lock()
	l.shown.batches++
	l.shown.inFlight += len(b.records)
	l.mu.Unlock()
	go l.fly(b, l.keeping(b, pass)) // ends with Biller.Bill; run waits for it
}

// fly bills the batch.
func (l *lane) fly(b *batch, pass domain.Pass) {
	b.err = l.metrics.batch(l.work, l.clock, b.records, func(ctx context.Context) error {
		return l.biller.Bill(ctx, pass, b.records)
	})
	<-l.slots
	l.landed <- b
}

// land settles a batch that has ended, and lets go those that have waited for it.
func (l *lane) land(b *batch) {
	own := &l.own
	own.flying--
	for _, waiting := range l.flights.release(b, &own.queue) {
		ring(waiting.freed)
	}
	l.keptBy(b)
	var made progress
	if b.err != nil {
		own.queue.giveBack(b)
	} else {
		made = own.queue.finish(b)
	}
	l.mu.Lock()
	l.shown.batches--
	l.shown.inFlight -= len(b.records)
	if b.err == nil {
		l.load.give(made.passed, made.bytes)
		l.shown.durable += len(b.records) - made.passed
	}
	if made.passed > 0 {
		l.move(made.position)
		l.pass()
	}
	l.mu.Unlock()

	// A batch that began before the last failure says nothing about what came after it.
	switch {
	case b.setbacks != own.setbacks:
	case b.err != nil:
		l.setBack(len(b.records), b.err)
	case own.failures > 0:
		l.recovered()
	}
}

// setBack makes the lane pause after a failure, and says why now and then. Until a
// batch that began later succeeds there is one at a time, as small as the one that failed.
func (l *lane) setBack(records int, cause error) {
	if l.intake.Err() != nil {
		return
	}
	own := &l.own
	own.setbacks++
	own.failures++
	if records > 0 {
		own.limit = records
	}
	own.retry.Reset(own.pauses.NextBackOff())
	l.setPausing(true)

	now := l.clock.Now()
	l.mu.Lock()
	l.shown.lastError = cause.Error()
	l.shown.failures = own.failures
	speak := own.failures == 1 || now.Sub(l.shown.complain) >= complainEvery
	if speak {
		l.shown.complain = now
	}
	l.mu.Unlock()
	if speak {
		l.logger.WarnContext(l.work, "batch failed; nothing of it is committed, it is run again",
			"partition", l.partition, "failures", own.failures, "error", cause)
	}
}

// recovered forgets the failures.
func (l *lane) recovered() {
	l.own.failures, l.own.limit = 0, 0
	l.own.pauses.Reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.failures, l.shown.lastError = 0, ""
}

func (l *lane) setPausing(pausing bool) {
	l.own.pausing = pausing
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown.pausing = pausing
}
