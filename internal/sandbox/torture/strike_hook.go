package torture

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/sandbox/torture/control"
)

// order arms the members, and returns who comes to the point first; nil when nobody
// does in time. Whoever is armed may die of it.
func (w *world) order(ctx context.Context, members []*member, deed control.Deed, at domain.Point, skip int64) *member {
	w.orders++
	o := control.Order{Number: w.orders, Deed: deed, Point: at, Skip: skip}
	for _, m := range members {
		m.doom(deed == control.Kill || deed == control.Exit)
		_ = m.line.Send(o) // one that has just gone is not waited for
	}
	timer := time.NewTimer(hookWait)
	defer timer.Stop()
	for {
		select {
		case r := <-w.record.reached:
			if r.number != o.Number {
				continue // a late one of an order before
			}
			for _, m := range w.disarm(o.Number, without(members, r.member)) {
				w.undo(ctx, m, deed) // it came there at the same moment
			}
			return r.member
		case <-timer.C:
			late := w.disarm(o.Number, members)
			if len(late) == 0 {
				return nil
			}
			for _, m := range late[1:] {
				w.undo(ctx, m, deed)
			}
			return late[0]
		}
	}
}

// undo has a member go on that has carried out an order of which one was enough.
func (w *world) undo(ctx context.Context, m *member, deed control.Deed) {
	switch deed {
	case control.Stop:
		w.thaw(ctx, m, 0, w.record.open(string(deed)))
	case control.Hold:
		_ = m.line.Send(control.Order{Deed: control.Go}) // else it goes on by itself
	default:
		w.record.open(string(deed))(0)
		w.again(ctx, m)
	}
}

// disarmTime is above what an order takes to its victim.
const disarmTime = 100 * time.Millisecond

// disarm takes an order back, and returns those who have carried it out all the same.
func (w *world) disarm(number int, members []*member) (late []*member) {
	for _, m := range members {
		_ = m.line.Send(control.Order{Deed: control.Disarm}) // one that is gone has forgotten
	}
	over := time.After(disarmTime)
	for {
		select {
		case r := <-w.record.reached:
			if r.number == number {
				late = append(late, r.member)
			}
			continue
		case <-over:
		}
		break
	}
	for _, m := range members {
		if !slices.Contains(late, m) && m.is(up) {
			m.doom(false)
		}
	}
	return late
}

// strikeAt has a member do something to itself at a point.
func (w *world) strikeAt(ctx context.Context, deed control.Deed, at domain.Point) error {
	if deed == control.Stop || at == domain.InRelay {
		w.tasks.Wait() // one at a time; and the relay waits for the transactions of a stopped one
	}
	w.flight(ctx)
	members := w.these(up)
	if at == domain.InRevoke {
		var err error
		if members, err = w.provoke(ctx); err != nil {
			return err
		}
	}
	skip := int64(0)
	if at != domain.InRevoke {
		skip = int64(w.dice.IntN(maxSkip))
	}
	m := w.order(ctx, members, deed, at, skip)
	hit := Hit{Kind: string(deed), Point: string(at), Missed: m == nil}
	if m == nil {
		w.made(hit)
		return nil
	}
	end := w.record.open(string(deed))
	if deed == control.Stop {
		m.set(frozen)
		hit.InFlight, _ = w.calling(ctx)
		w.made(hit)
		w.thaw(ctx, m, w.frost(), end)
		return nil
	}
	if err := m.gone(); err != nil {
		return err
	}
	end(0)
	hit.InFlight, _ = w.calling(ctx)
	w.made(hit)
	w.again(ctx, m)
	return nil
}

// provoke brings a rebalance about: a member joins within moments. It returns those
// from whom partitions are taken then.
func (w *world) provoke(ctx context.Context) ([]*member, error) {
	w.tasks.Wait()
	stay := w.these(up)
	var comes *member
	if out := w.these(down); len(out) > 0 {
		comes = out[w.dice.IntN(len(out))]
	} else {
		comes = stay[w.dice.IntN(len(stay))]
		comes.leave(ctx)
		stay = without(stay, comes)
	}
	if len(stay) == 0 {
		return nil, errors.New("nobody is there to take partitions from")
	}
	for _, m := range stay {
		if err := m.awaitReady(ctx); err != nil {
			return nil, err
		}
	}
	w.again(ctx, comes)
	return stay, nil
}

// killBetween kills a member at a point at which it has no charge in flight: family a
// has a provider that would charge a repeated POST again. That nobody has is certain
// while the table of intents is locked, without which no charge is sent.
func (w *world) killBetween(ctx context.Context, at domain.Point) error {
	w.tasks.Wait()
	m := w.order(ctx, w.these(up), control.Hold, at, int64(w.dice.IntN(maxSkip)))
	if m == nil {
		w.made(Hit{Kind: "kill", Point: string(at), Missed: true})
		return nil
	}
	end := w.record.open("kill")
	others := w.these(up)
	for _, o := range others { // what they have in flight ends, and the moment comes
		o.intake(ctx, "pause")
	}
	defer func() {
		for _, o := range others {
			o.intake(ctx, "resume")
		}
	}()
	killed := false
	for held := time.Now(); !killed && time.Since(held) < holdTime; {
		var err error
		if killed, err = w.killQuietly(ctx, m); err != nil {
			return err
		}
	}
	w.made(Hit{Kind: "kill", Point: string(at), Missed: !killed})
	end(0)
	if !killed {
		return m.line.Send(control.Order{Deed: control.Go})
	}
	w.again(ctx, m)
	return nil
}

// holdTime is for how long a member is held at a point, less than it holds by itself; quietPoll is how often a quiet
// moment is looked for.
const (
	holdTime  = 4 * time.Second
	quietPoll = 2 * time.Millisecond
)

// killQuietly kills the member if no charge at all is in flight.
func (w *world) killQuietly(ctx context.Context, m *member) (killed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if n, err := w.calling(ctx); err != nil || n > 0 {
		pause(ctx, quietPoll)
		return false, nil // most likely not now; to wait for the lock would only hold everybody up
	}
	err = pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		var flying int
		if _, err := tx.Exec(ctx, `LOCK TABLE charge_intent IN EXCLUSIVE MODE NOWAIT`); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM charge_intent WHERE state = 'calling'`).Scan(&flying); err != nil || flying > 0 {
			return err
		}
		killed = true
		return m.kill()
	})
	if !killed {
		return false, nil // it could not be locked at once, or there are charges in flight
	}
	m.set(down)
	return true, err
}
