package protocol_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

var seedFlag = flag.Uint64("protocol.seed", 0, "seed of the randomized run; 0 draws one")

// dice are drawn by many goroutines.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func (d *dice) intN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

// percent is true in so many of a hundred draws.
func (d *dice) percent(n int) bool { return d.intN(100) < n }

// storm is a randomized run: several instances, each with partitions of its own,
// events that share orders or come again, a provider that fails in every way,
// transactions that are lost, processes that die, and a clock that jumps.
type storm struct {
	*world
	dice    *dice
	events  []event
	lanes   [][]domain.Record // by partition
	mu      sync.Mutex
	workers []*running
	born    int
}

func TestRandomizedRunChargesEveryOrderAtMostOnce(t *testing.T) {
	t.Parallel()
	for run := range 2 {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
			t.Parallel()
			seed := *seedFlag
			if seed == 0 {
				seed = rand.Uint64()
			}
			t.Logf("go test -run '%s' -protocol.seed %d", t.Name(), seed)
			s := newStorm(t, seed)
			s.rage()
			s.calm()
			s.verify()
		})
	}
}

const (
	stormLanes  = 3
	stormEvents = 60
	stormBatch  = 7
)

func newStorm(t *testing.T, seed uint64) *storm {
	t.Helper()
	w := newWorld(t)
	w.policy.ChargeBudget, w.policy.CommitMargin, w.policy.Lease = 2*time.Second, time.Second, 5*time.Second
	s := &storm{world: w, dice: &dice{rnd: rand.New(rand.NewPCG(seed, 1))}, lanes: make([][]domain.Record, stormLanes)}
	for n := range stormEvents {
		order := int64(n + 1)
		if n > 0 && s.dice.percent(30) {
			order = s.events[s.dice.intN(n)].order // a second event of some order
		}
		amount := "10.50"
		if s.dice.percent(10) {
			amount = "10.51"
		}
		e := w.event(order, amount)
		s.events = append(s.events, e)
		w.provider.script(e.id, s.weather(), s.weather(), s.weather())
		s.place(e.record)
	}
	for range stormEvents / 4 { // duplicates
		e := s.events[s.dice.intN(len(s.events))]
		switch {
		case s.dice.percent(80):
			s.place(e.record)
		default:
			s.place(w.altered(e, "99.00"))
		}
	}
	return s
}

// place puts a record at the end of some partition.
func (s *storm) place(r domain.Record) {
	lane := s.dice.intN(stormLanes)
	s.lanes[lane] = append(s.lanes[lane], s.republished(int32(lane), r))
}

// weather is how the provider takes one request.
func (s *storm) weather() step {
	steps := []step{
		captures, captures, captures, captures, losing(captures), losing(captures), times, refuses, refuses,
		declines, losing(declines), rejects, conflicts, s.outliving(captures), s.outliving(rejects), s.outliving(refuses),
	}
	return steps[s.dice.intN(len(steps))]
}

// outliving answers after the lease has ended, and late enough for a worker of
// another instance to have taken the intent over.
func (s *storm) outliving(answer step) step {
	return func(ctx context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
		s.clock.advance(s.policy.Lease)
		select {
		case <-time.After(400 * time.Millisecond): // two polls of a worker
		case <-ctx.Done():
		}
		return answer(ctx, l, r)
	}
}

// spawn starts an instance with a worker and without luck.
func (s *storm) spawn() *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.born++
	i := s.instance(fmt.Sprint("instance ", s.born))
	i.seam.chaos = func(p point) error {
		switch {
		case s.dice.percent(3):
			return errLost
		case s.dice.percent(1) && s.dice.percent(50):
			return i.seam.kill()
		case (p == mainWrites || p == mainCommits) && s.dice.percent(2):
			s.terminateMain()
		}
		if s.dice.percent(5) {
			s.clock.advance(time.Duration(s.dice.intN(3000)) * time.Millisecond)
		}
		return nil
	}
	s.workers = append(s.workers, i.run())
	return i
}

// rage bills every lane, each in its order, until all of it is durable.
func (s *storm) rage() {
	s.t.Helper()
	var lanes sync.WaitGroup
	errs := make([]error, stormLanes)
	for lane := range stormLanes {
		lanes.Go(func() { errs[lane] = s.drain(s.lanes[lane]) })
	}
	lanes.Wait()
	for _, w := range s.workers {
		w.stop()
	}
	for _, err := range errs {
		require.NoError(s.t, err)
	}
}

func (s *storm) drain(records []domain.Record) error {
	i := s.spawn()
	for len(records) > 0 {
		batch := records[:min(len(records), 1+s.dice.intN(stormBatch))]
		var err error
		for try := 0; ; try++ {
			if err = i.Bill(context.WithoutCancel(s.t.Context()), domain.Pass{}, slices.Clone(batch)); err == nil {
				break
			}
			if try == 100 {
				return fmt.Errorf("batch fails for ever: %w", err)
			}
			if i.seam.isDead() {
				i = s.spawn()
			}
			if s.dice.percent(30) { // the record comes again late: workers go about meanwhile
				s.clock.advance(2 * s.policy.Lease)
				i.seam.forgetIdle()
				select {
				case <-i.seam.idle:
				case <-time.After(time.Second): // its worker has enough to do
				}
			}
		}
		if s.dice.percent(90) { // else the offset is not committed: all of it comes again
			records = records[len(batch):]
		}
	}
	return nil
}

// calm lets a lucky instance finish what is left.
func (s *storm) calm() {
	s.t.Helper()
	last := s.instance("last")
	for range 8 {
		s.clock.advance(2 * time.Hour)
		last.settle()
	}
	s.clock.advance(10 * time.Hour) // beyond the retry horizon
	last.settle()
}

func (s *storm) verify() {
	s.t.Helper()
	s.balanced()
	var open int
	s.scan("SELECT count(*) FROM charge_intent WHERE state NOT IN ('parked', 'held') OR NOT claimed", nil, &open)
	require.Zero(s.t, open, "unfinished after the retry horizon")
	captured := map[int64]uuid.UUID{}
	for _, e := range s.events {
		switch status := s.status(e); status {
		case "captured":
			require.NotContains(s.t, captured, e.order)
			captured[e.order] = e.id
		case "":
			s.explained(e)
		default:
			require.Zero(s.t, s.provider.capturesOf(e.id), "%s, and charged", status)
		}
	}
	n := s.counters()
	require.EqualValues(s.t, stormEvents, n.Processed)
	require.EqualValues(s.t, len(captured), n.Captured)
	s.t.Logf("%+v, letters %d, processes %d", n, len(s.letters()), s.born)
}

// explained requires that an event without a final charge has an open letter, and
// is not called uncharged when it was charged.
func (s *storm) explained(e event) {
	s.t.Helper()
	in := s.intent(e)
	if s.provider.capturesOf(e.id) > 0 {
		require.Equal(s.t, "parked", in.State)
	}
	var letters int
	s.scan("SELECT count(*) FROM dead_letter WHERE event_id = $1 AND state = 'open' AND reason <> 'conflicting_payload'", []any{e.id}, &letters)
	require.Equal(s.t, 1, letters)
}
