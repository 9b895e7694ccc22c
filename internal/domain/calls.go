package domain

import (
	"sync"
	"time"
)

// calls hands the charges of a batch out to those who call, and their answers
// back to the batch, until it waits no longer.
type calls struct {
	mu     sync.Mutex
	items  []*item // not handed out yet
	open   map[*item]bool
	closed bool
	total  int

	begun chan struct{} // closed when the last call has begun
	all   chan struct{} // closed when every call is answered
	ended chan struct{} // closed when the batch's transaction has ended
}

func newCalls(items []*item) *calls {
	c := &calls{
		items: items, total: len(items), open: make(map[*item]bool, len(items)),
		begun: make(chan struct{}), all: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, it := range items {
		c.open[it] = true
	}
	return c
}

// next returns the next item to call; nil when there is none.
func (c *calls) next() *item {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.items) == 0 {
		return nil
	}
	it := c.items[0]
	if c.items = c.items[1:]; len(c.items) == 0 {
		close(c.begun)
	}
	return it
}

// answered gives the batch an answer; false when it waits no longer.
func (c *calls) answered(it *item, a Answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	it.answer = a
	if delete(c.open, it); len(c.open) == 0 {
		close(c.all)
	}
	return true
}

// answers returns how many calls are answered so far.
func (c *calls) answers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total - len(c.open)
}

// haveBegun waits for the last call to begin, and gives up after a while.
func (c *calls) haveBegun(after time.Duration) bool {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-c.begun:
		return true
	case <-t.C:
		return false
	}
}

// wait returns when every call is answered, or when patience has passed since the
// last one began. What is open then is left behind. Patience 0 waits for all.
func (c *calls) wait(patience time.Duration) {
	<-c.begun
	var soft <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
		defer t.Stop()
		soft = t.C
	}
	select {
	case <-c.all:
	case <-soft:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed = true
		for it := range c.open {
			it.left = true
		}
	}
}

// end tells those that were left behind that the batch's transaction is over.
func (c *calls) end() {
	if c != nil {
		close(c.ended)
	}
}
