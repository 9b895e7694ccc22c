package run

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// rollShare is the part of the orders that instances join and leave within; a rest is charged by those there are then.
	rollShare = 0.9
	// rollSpread is the part of a turn's requests that its moment is drawn from, and rollHead the part of its
	// records that is sent for it: the difference waits or is on its way when an instance is told to end.
	rollSpread, rollHead = 0.35, 0.6
	// rollTail is how long the rest of a turn's records takes, sent from when the group begins to move.
	rollTail = 2 * time.Second
	// rollLump is how many of these go at once at least: a few at a time would be no load.
	rollLump = 100
	// minTurn is the least number of records of one turn.
	minTurn = 200
	// rollLook is the pause between two looks at a group that moves.
	rollLook = 10 * time.Millisecond
	// lumpLook is how long one lump is looked for at the instance that is to leave, before it is sent the next: a look takes long
	// on a busy machine, and all lumps at once would be charged between two of them.
	lumpLook = 250 * time.Millisecond
	// busyTimeout bounds the wait for an instance that is to leave to have records in flight.
	busyTimeout = 2 * time.Second
	// settleTimeout bounds how long a group may take until every partition has an owner again.
	settleTimeout = time.Minute
	// rollStream separates the roller's dice from the others'.
	rollStream = 0x726f6c6c
)

// roller makes instances leave, as a deploy does, and join while they work.
type roller struct {
	moments
	members *members
	watcher *watcher
	feed    *feed
	began   time.Time
	rolls   int
	records int64 // to be sent; 0 in an endless run
	backlog bool  // they are sent as fast as they go
	say     func(string, ...any)
}

// run does as many turns as asked and returns what happened. It ends with ctx, or when stop is closed: there is nothing left to disturb.
func (r *roller) run(ctx context.Context, stop <-chan struct{}) ([]Roll, error) {
	defer r.feed.allow(r.records)
	done := make([]Roll, 0, r.rolls)
	last := int64(0)
	if r.rolls > 0 {
		r.assemble(ctx)
	}
	for n := range r.rolls {
		r.feed.allow(r.upTo(n, rollHead))
		if !r.await(ctx, stop, n, last) {
			return done, context.Cause(ctx)
		}
		roll, err := r.turn(ctx, n)
		if err != nil {
			return done, fmt.Errorf("turn %d of instances: %w", n+1, err)
		}
		done = append(done, roll)
		r.say("%s", roll)
		last = r.posts()
	}
	return done, nil
}

// assemble waits until all instances are members that own every partition between them, at most settleTimeout: one that is
// ready may have none yet, and would leave with nothing in flight.
func (r *roller) assemble(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		if now, err := r.watcher.stands(ctx); err == nil && now.settled(len(r.members.running())) {
			return
		}
		if sleep(ctx, rollLook) != nil {
			return
		}
	}
}

// upTo is how many records are sent once this part of the n-th turn's is.
func (r *roller) upTo(n int, part float64) int64 {
	return int64(rollShare * float64(r.records) * (float64(n) + part) / float64(r.rolls))
}

// pick draws who leaves and who joins.
func (r *roller) pick(ctx context.Context) (leaves, joins *instance, err error) {
	for {
		if leaves, joins = r.members.draw(r.dice); leaves != nil || joins != nil {
			return leaves, joins, nil
		}
		if err := sleep(ctx, momentPoll); err != nil {
			return nil, nil, err
		}
	}
}

// turn lets an instance leave, join, or one of each, and waits until the group has settled.
func (r *roller) turn(ctx context.Context, n int) (roll Roll, err error) {
	leaves, joins, err := r.pick(ctx)
	if err != nil {
		return roll, err
	}
	defer r.members.put(leaves, false)
	defer r.members.put(joins, true)
	if leaves != nil {
		roll.Left, roll.LeftInFlight = leaves.number, r.awaitBusy(ctx, leaves, n)
	}
	began := time.Now()
	roll.At, roll.Posts = time.Since(r.began), r.posts()
	roll.AtSeconds = roll.At.Round(time.Millisecond).Seconds()
	var moving errgroup.Group
	if leaves != nil {
		moving.Go(func() error {
			if err := leaves.stop(ctx); err != nil {
				roll.Disorder = err.Error()
			}
			return nil
		})
	}
	if joins != nil {
		roll.Joined = joins.number
		moving.Go(func() error {
			if err := joins.start(); err != nil {
				return err
			}
			return joins.awaitReady(ctx)
		})
	}
	moved := make(chan error, 1)
	go func() { moved <- moving.Wait() }()
	w := watch{roller: r, turn: n, leaver: leaves}
	err = w.until(ctx, moved)
	roll.Settled, roll.Members, roll.MovedInFlight = w.settled, w.members, w.inFlight
	if r.backlog {
		roll.Waiting = r.waiting(ctx)
	}
	roll.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	return roll, err
}

// awaitBusy waits until an instance has records in flight, and returns how many. Where it is
// done with its own already, more of the turn's are sent.
func (r *roller) awaitBusy(ctx context.Context, i *instance, turn int) int {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	next := time.Now()
	for sent := r.upTo(turn, rollHead); ; {
		now, err := i.lanes(ctx)
		if n := total(now); err == nil && n > 0 {
			return n
		}
		if err == nil && sent < r.upTo(turn, 1) && !time.Now().Before(next) {
			sent += rollLump
			r.feed.allow(min(sent, r.upTo(turn, 1)))
			next = time.Now().Add(lumpLook)
		}
		if sleep(ctx, rollLook) != nil {
			return 0
		}
	}
}
