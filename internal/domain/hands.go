package domain

import (
	"sync"
	"time"
)

// restFor is how long a hand without work waits for more: for the next batch, and
// not so long that those which rest take turns and none ever goes.
const restFor = 50 * time.Millisecond

// hands are goroutines that call for one batch after another. A new goroutine has
// to grow its stack to the depth of an HTTP request first, which at a fast
// provider costs a tenth of all that a charge costs.
type hands struct {
	work chan func() // not buffered: a task goes to a hand that rests, or to a new one
	busy *sync.WaitGroup
	over chan struct{} // closed when there is no more work
	end  func()
}

func newHands() hands {
	over := make(chan struct{})
	return hands{
		work: make(chan func()), busy: new(sync.WaitGroup),
		over: over, end: sync.OnceFunc(func() { close(over) }),
	}
}

// do has the task done, and returns at once.
func (h *hands) do(task func()) {
	h.busy.Add(1)
	select {
	case h.work <- task:
	default:
		go h.run(task)
	}
}

// run does a task and those that come while it rests.
func (h *hands) run(task func()) {
	rest := time.NewTimer(restFor)
	defer rest.Stop()
	for {
		task()
		h.busy.Done()
		rest.Reset(restFor)
		select {
		case task = <-h.work:
		case <-rest.C:
			return
		case <-h.over:
			return
		}
	}
}

// drain waits for the tasks, and lets those go home that rest.
func (h *hands) drain() {
	h.busy.Wait()
	h.end()
}
