package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/sandbox/run"
	"example.com/billing/internal/sandbox/torture/control"
)

// strike is one fault that can be made, at a moment that is found by it.
type strike struct {
	name string
	do   func(ctx context.Context) error
}

const (
	// flightWait is the longest wait for a charge in flight before a fault is made all the same.
	flightWait = 5 * time.Second
	flightPoll = 5 * time.Millisecond
	// maxIdle is how often in a row that wait may be in vain before something must be stuck.
	maxIdle = 3
	// hookWait is the longest wait for a victim to come to a point.
	hookWait = 8 * time.Second
	// thawTime is how long after its stop a member may still do what it was about to.
	thawTime = time.Second
	// maxSkip is how often a point may be passed before the fault is made there.
	maxSkip = 4
	// The pause between two faults, and before a dead victim is started again.
	minPause, maxPause = 200 * time.Millisecond, 1200 * time.Millisecond
)

// between draws a time.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)))
}

// deck is every strike of family b once, or of family a, shuffled.
func (w *world) deck() []strike {
	var deck []strike
	add := func(name string, do func(context.Context) error) { deck = append(deck, strike{name, do}) }
	if w.family.name == FamilyA {
		for _, p := range []domain.Point{domain.AfterCommit, domain.BeforeOffsetCommit, domain.InRelay} {
			add("kill "+string(p), func(ctx context.Context) error { return w.killBetween(ctx, p) })
		}
		add("leave", w.leaveOne)
		add("join", w.joinOne)
		add("rebalance", w.replaceOne)
		add("offsets", w.resetOffsets)
	} else {
		deck = w.deckOfB()
	}
	w.dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

func (w *world) deckOfB() []strike {
	var deck []strike
	add := func(name string, do func(context.Context) error) { deck = append(deck, strike{name, do}) }
	for _, p := range domain.Points() {
		for _, d := range []control.Deed{control.Kill, control.Stop} {
			add(string(d)+" "+string(p), func(ctx context.Context) error { return w.strikeAt(ctx, d, p) })
		}
	}
	points := domain.Points()
	exit := points[w.dice.IntN(len(points))]
	add("exit "+string(exit), func(ctx context.Context) error { return w.strikeAt(ctx, control.Exit, exit) })
	add("kill", w.killAny)
	add("stop", w.stopAny)
	add("postgres", w.restartPostgres)
	add("broker", w.restartBroker)
	for _, f := range providerFaults() {
		add("provider "+f.name, func(ctx context.Context) error { return w.failProvider(ctx, f) })
	}
	for _, l := range []*link{w.toProvider, w.toPostgres, w.toKafka} {
		add("cut", func(ctx context.Context) error { return w.cut(ctx, l) })
		add("swallow", func(ctx context.Context) error { return w.swallow(ctx, l) })
	}
	add("halve", w.halveRequests)
	add("halve", w.halveRequests)
	add("leave", w.leaveOne)
	add("join", w.joinOne)
	add("offsets", w.resetOffsets)
	return deck
}

// torment makes one fault after another until ctx ends, and then heals what is left.
func (w *world) torment(ctx context.Context) error {
	work := context.WithoutCancel(ctx) // a fault that has begun is made whole
	for ctx.Err() == nil {
		for _, s := range w.deck() {
			if ctx.Err() != nil {
				break
			}
			if err := s.do(work); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			pause(ctx, between(w.dice, minPause, maxPause))
		}
	}
	w.tasks.Wait()
	return nil
}

// flight waits for a charge in flight and returns how many there are.
func (w *world) flight(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, flightWait)
	defer cancel()
	for {
		n, err := w.calling(ctx)
		if err == nil && n > 0 {
			w.idle = 0
			return n
		}
		if !pause(ctx, flightPoll) {
			w.idle++
			if w.idle >= maxIdle {
				w.unwedge(context.WithoutCancel(ctx))
			}
			return 0
		}
	}
}

// unwedge starts the embedded broker anew: whatever it has forgotten to answer, it is asked again then. What was known
// to stop it (package broker, keeper) is mended, so that this should not be needed. Apache Kafka is left alone:
// there it would be a finding.
func (w *world) unwedge(ctx context.Context) {
	w.idle = 0
	if w.options.Kafka != run.KafkaEmbedded {
		return
	}
	w.wedged++
	w.say("nothing moves: the embedded broker is started anew")
	if err := w.brokers.restart(ctx, false); err != nil {
		w.record.complain("embedded broker: %v", err)
	}
}

// made notes a fault that was made.
func (w *world) made(h Hit) {
	w.record.hit(h)
	at := h.Point
	if at != "" {
		at = " " + at
	}
	if h.Missed {
		w.say("%s%s: not reached", h.Kind, at)
		return
	}
	w.say("%s%s: %d in flight", h.Kind, at, h.InFlight)
}

// oneUp draws a member that runs; where none does, one is started.
func (w *world) oneUp(ctx context.Context) (*member, error) {
	running := w.these(up)
	if len(running) == 0 {
		w.tasks.Wait()
		running = w.these(up)
	}
	if len(running) == 0 {
		return w.members[0], w.members[0].start(ctx)
	}
	return running[w.dice.IntN(len(running))], nil
}

// again starts a member after a while, aside.
func (w *world) again(ctx context.Context, m *member) {
	after := between(w.dice, 0, maxPause)
	w.tasks.Go(func() {
		pause(ctx, after)
		if err := m.start(ctx); err != nil {
			w.record.complain("%v", err)
		}
	})
}

// thaw continues a stopped member after so long, aside.
func (w *world) thaw(ctx context.Context, m *member, after time.Duration, end func(time.Duration)) {
	w.tasks.Go(func() {
		pause(ctx, after)
		if err := m.proceed(); err != nil {
			w.record.complain("%v", err)
		}
		end(thawTime)
	})
}

// frost draws for how long a member stands still: past the session, and now and then
// past the lease, too.
func (w *world) frost() time.Duration {
	least, most := w.family.session+500*time.Millisecond, w.family.session+2*time.Second
	if w.dice.IntN(4) == 0 {
		least, most = w.family.lease+time.Second, w.family.lease+5*time.Second
	}
	return between(w.dice, least, most)
}

// without returns the members but one.
func without(members []*member, m *member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(o *member) bool { return o == m })
}
