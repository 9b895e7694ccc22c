package kafka

import (
	"context"
	"time"
)

// windUpWait bounds how long a lane that stops waits for a slot and a pass to bill what
// it has passed over. To do without costs no more than redeliveries.
const windUpWait = 2 * time.Second

// windUp ends a lane that takes nothing new. What is in flight lands. Before that ends, what
// was passed over is billed if nothing is wrong: the next owner would get all that is durable
// behind it once more. Whoever stops the lane bounds it, by cancelling its work.
func (l *lane) windUp() {
	own := &l.own
	own.queue.cut()
	cancelled := l.work.Done()
	healthy := own.failures == 0
	for {
		gaps := healthy && own.queue.waiting+own.queue.held > 0
		if !gaps && own.flying == 0 && !own.seeking {
			return
		}
		if gaps && own.queue.waiting > 0 && own.flying < maxBatches && !own.seeking {
			l.seekLast()
		}
		select {
		case <-l.freed:
			own.queue.release()
		case brought := <-l.admitted:
			healthy = l.launchLast(brought, healthy) && healthy
		case ended := <-l.landed:
			l.land(ended)
			healthy = healthy && ended.err == nil
		case asked := <-l.kept.asks:
			l.answer(asked)
		case done := <-l.kept.wrote:
			l.written(done)
		case <-cancelled:
			healthy, cancelled = false, nil
		}
	}
}

// seekLast is seek for a lane that takes nothing new.
func (l *lane) seekLast() {
	l.own.seeking = true
	go func() { // ends within windUpWait; windUp takes what it brings
		ctx, cancel := context.WithTimeout(l.work, windUpWait)
		defer cancel()
		l.admitted <- l.admit(ctx, false)
	}()
}

// launchLast begins a batch if one is wanted still. It reports whether it was admitted.
func (l *lane) launchLast(brought admission, wanted bool) (admitted bool) {
	l.own.seeking = false
	if brought.err != nil {
		return false
	}
	if wanted {
		l.lift(brought.pass)
	} else {
		<-l.slots
	}
	return true
}
