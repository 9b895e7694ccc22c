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

const (
	// parentPoll is how often a part looks whether the process that started it is still there.
	parentPoll = 500 * time.Millisecond
	// againAfter tells a second wish to end from the first one's echo: make and timeout signal a whole group and its members.
	againAfter = 400 * time.Millisecond
)

// errParentEnded is the cause of an end that nobody asked for by a signal.
var errParentEnded = errors.New("the process that started this one has ended")

// untilEnded returns a context that ends on Ctrl-C, SIGTERM, a closed terminal,
// and with the process that started this one: a part that a script forgot does
// not stay behind. Under nohup, which says that it shall, only SIGTERM and
// Ctrl-C count. The cause of the context says which it was.
func untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	follow(ctx, cancel)
	return ctx, func() { cancel(nil) }
}

// untilBrokenOff is untilEnded for a command that has something to finish when it is told to end:
// broken ends when it is told so again. Until cancel is called no signal ends the process by itself.
func untilBrokenOff(ctx context.Context) (ended, broken context.Context, cancel context.CancelFunc) {
	broken, breakOff := context.WithCancelCause(ctx)
	ended, end := context.WithCancelCause(broken)
	running, stop := context.WithCancel(ctx)
	var first time.Time
	follow(running, func(cause error) {
		switch {
		case first.IsZero():
			first = time.Now()
			end(cause)
		case time.Since(first) > againAfter && !errors.Is(cause, errParentEnded):
			breakOff(cause)
		}
	})
	return ended, broken, func() { stop(); breakOff(nil) }
}

// follow calls end, from one goroutine, for every signal to end and once when the parent has ended, until ctx ends.
func follow(ctx context.Context, end func(cause error)) {
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
				end(signalError{s})
			case <-tick.C:
				// A part of which init is the parent, as in a container, has nobody to follow.
				if !stays && parent > 1 && os.Getppid() != parent {
					parent = 0
					end(errParentEnded)
				}
			}
		}
	}()
}

// signalError is the cause of an end that was asked for.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return fmt.Sprintf("asked to end by signal %v", e.Signal) }
