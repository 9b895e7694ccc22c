package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// parentPoll is how often a part looks whether the process that started it is still there.
const parentPoll = 500 * time.Millisecond

// errParentEnded is the cause of an end that nobody asked for by a signal.
var errParentEnded = errors.New("the process that started this one has ended")

// untilEnded returns a context that ends on Ctrl-C, SIGTERM, a closed terminal,
// and with the process that started this one: a part that a script forgot does
// not stay behind. Under nohup, which says that it shall, only SIGTERM and
// Ctrl-C count. The cause of the context says which it was.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	stays := signal.Ignored(syscall.SIGHUP)
	if !stays {
		signals = append(signals, syscall.SIGHUP)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, signals...)
	tick := time.NewTicker(parentPoll)
	parent := os.Getppid()
	go func() {
		defer signal.Stop(arrived)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-arrived:
				cancel(signalError{s})
			case <-tick.C:
				// A part of which init is the parent, as in a container, has nobody to follow.
				if !stays && parent > 1 && os.Getppid() != parent {
					cancel(errParentEnded)
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// signalError is the cause of an end that was asked for.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return fmt.Sprintf("asked to end by signal %v", e.Signal) }
