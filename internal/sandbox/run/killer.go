package run

import (
	"context"
	"fmt"
	"time"
)

const (
	// killShare is the part of the work within which kills fall, so that there is work left to be disturbed by the last.
	killShare = 0.8
	// killStream separates the killer's dice from the orders'.
	killStream = 0x6b696c6c
)

// killer kills instances while they work.
type killer struct {
	moments
	members *members
	books   *books
	began   time.Time
	kills   int
	say     func(string, ...any)
}

// run kills as often as asked and returns what it did. It ends with ctx, or when stop is closed: there is nothing left
// to disturb.
func (k *killer) run(ctx context.Context, stop <-chan struct{}) ([]Kill, error) {
	done := make([]Kill, 0, k.kills)
	last := int64(0)
	for n := range k.kills {
		if !k.await(ctx, stop, n, last) {
			return done, context.Cause(ctx)
		}
		kill, err := k.strike(ctx)
		if err != nil {
			return done, fmt.Errorf("kill %d: %w", n+1, err)
		}
		done = append(done, kill)
		last = k.posts()
	}
	return done, nil
}

// victim takes an instance that nobody else makes come or go.
func (k *killer) victim(ctx context.Context) (*instance, error) {
	for {
		if i := k.members.take(k.dice); i != nil {
			return i, nil
		}
		if err := sleep(ctx, momentPoll); err != nil {
			return nil, err
		}
	}
}

// strike kills an instance, looks what it left unfinished before anybody can take it up, and starts it again.
func (k *killer) strike(ctx context.Context) (Kill, error) {
	i, err := k.victim(ctx)
	if err != nil {
		return Kill{}, err
	}
	defer k.members.put(i, true)
	kill := Kill{Instance: i.number, At: time.Since(k.began), Posts: k.posts()}
	kill.AtSeconds = kill.At.Round(time.Millisecond).Seconds()
	if err := i.kill(); err != nil {
		return kill, err
	}
	if kill.Unfinished, err = k.books.unfinished(ctx); err != nil {
		return kill, err
	}
	kill.InFlight = len(kill.Unfinished)
	k.say("kill -9 of instance %d at %.1f s, after %s POSTs: %s charges unfinished", kill.Instance, kill.AtSeconds,
		number(kill.Posts), number(int64(kill.InFlight)))
	if err := i.start(); err != nil {
		return kill, err
	}
	return kill, i.awaitReady(ctx)
}
