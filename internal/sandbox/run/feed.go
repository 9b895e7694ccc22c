package run

import (
	"context"
	"sync"
)

// feed holds the orders back until they are wanted: they last for as long as
// instances join and leave, however fast they are charged.
type feed struct {
	mu      sync.Mutex
	allowed int64         // records that may be sent
	more    chan struct{} // closed when that grows
}

func newFeed() *feed { return &feed{more: make(chan struct{})} }

// allow lets so many records go in all. It takes nothing back.
func (f *feed) allow(records int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if records <= f.allowed {
		return
	}
	f.allowed = records
	close(f.more)
	f.more = make(chan struct{})
}

// wait waits until the record with this number, from 0, may be sent, or returns
// the cause of ctx's end.
func (f *feed) wait(ctx context.Context, record int) error {
	for {
		f.mu.Lock()
		allowed, more := f.allowed, f.more
		f.mu.Unlock()
		if int64(record) < allowed {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
