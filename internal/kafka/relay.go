package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"example.com/billing/internal/domain"
)

// Outbox is what a relay publishes from. After an error its place is given up, and
// Lead has to be asked again.
type Outbox interface {
	// Lead reports whether this instance is the one that publishes, and makes it so
	// where nobody else is.
	Lead(ctx context.Context) (bool, error)
	// Next returns the next messages in their order; the same ones until Move.
	Next(ctx context.Context) ([]domain.Outgoing, error)
	// Move says that the batch is published but for what was refused, which is kept
	// aside. It fails when another instance leads meanwhile.
	Move(ctx context.Context, batch []domain.Outgoing, refused []domain.Refusal) error
	// Backlog says what is still to be published.
	Backlog(ctx context.Context) (domain.Backlog, error)
	// Prune frees what was published longer ago than keep, where it can be freed whole.
	Prune(ctx context.Context, keep time.Duration) (freed int, err error)
	// Resign gives the place up.
	Resign() error
}

// Bounds of a relay that nobody has to choose.
const (
	// leadPoll is how often an instance that does not lead asks whether it may.
	leadPoll = 500 * time.Millisecond
	// outboxTimeout bounds one question to the outbox.
	outboxTimeout = 6 * time.Second
	// backlogEvery is how often the backlog is counted, pruneEvery how often slots are freed.
	backlogEvery = 5 * time.Second
	pruneEvery   = 10 * time.Minute
)

// RelayConfig says where messages go, and within which bounds.
type RelayConfig struct {
	// Topics by kind. Messages of a kind without one are passed over.
	Topics map[domain.MessageKind]string
	// Poll is the pause while there is nothing to publish. Default 100ms.
	Poll time.Duration
	// Attempt bounds how long the client tries to deliver a message before we hear
	// that it could not; it is tried again, for ever. Default 15s.
	Attempt time.Duration
	// Patience is how long a topic that we may not write to holds up everything
	// before its messages are passed over. Default 1m.
	Patience time.Duration
	// Drain bounds the end: how long it goes on publishing what is there. Default 3s.
	Drain time.Duration
	// Keep is how long published messages stay in the outbox. Default 24h.
	Keep time.Duration
}

// DefaultRelayConfig returns the defaults stated at the fields.
func DefaultRelayConfig() RelayConfig {
	return RelayConfig{
		Poll: 100 * time.Millisecond, Attempt: 15 * time.Second, Patience: time.Minute,
		Drain: 3 * time.Second, Keep: 24 * time.Hour,
	}
}

// Relay publishes the messages of an outbox, in their order, at least once, and none
// before the transaction that appended it has committed. Of all instances one does.
// Create it by NewRelay, run it once.
type Relay struct {
	cfg     RelayConfig
	outbox  Outbox
	sender  *sender
	metrics *relayMetrics
	clock   domain.Clock
	logger  *slog.Logger
	faults  domain.Faults
	pauses  *backoff.ExponentialBackOff

	// What follows is that of Run's goroutine.
	pending   *pending
	counted   time.Time            // when the backlog was last counted
	pruned    time.Time            // when slots were last freed
	forbidden map[string]time.Time // topics that refuse us, and since when
	told      time.Time            // when trouble was last logged

	mu     sync.Mutex
	status RelayStatus
}

// pending is a batch that is not published whole.
type pending struct {
	batch   []domain.Outgoing
	open    []int // neither delivered nor refused
	refused []domain.Refusal
}

// NewRelay returns a relay that is not connected yet. Of cfg it takes how to reach
// the brokers.
func NewRelay(cfg Config, relay RelayConfig, outbox Outbox, logger *slog.Logger, to Telemetry, clock domain.Clock) (*Relay, error) {
	if err := relay.Validate(); err != nil {
		return nil, err
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = firstRetry, lastRetry
	r := &Relay{
		cfg: relay, outbox: outbox, clock: clock, logger: logger, faults: cfg.Faults, pauses: pauses, forbidden: map[string]time.Time{},
	}
	r.sender = newSender(cfg, relay.Attempt, logger)
	if err := r.sender.open(); err != nil {
		return nil, fmt.Errorf("kafka producer: %w", err)
	}
	var err error
	if r.metrics, err = newRelayMetrics(to, r.Status, clock); err != nil {
		return nil, errors.Join(err, r.sender.close())
	}
	return r, nil
}

// Validate returns all complaints joined, or nil; those about what an operator sets
// name its variable.
func (c RelayConfig) Validate() error {
	var wrong complaints
	for kind, topic := range c.Topics {
		wrong.unless(topic == "" || validTopic(topic), "%s: %q is not a topic's name", topicVariable(kind), topic)
	}
	wrong.unless(c.Poll > 0 && c.Attempt > 0 && c.Drain > 0 && c.Keep > 0, "relay: a bound is not positive")
	return errors.Join(wrong...)
}

// topicVariable names what an operator sets the topic of a kind with.
func topicVariable(kind domain.MessageKind) string {
	if kind == domain.LetterMessage {
		return "KAFKA_DLQ_TOPIC"
	}
	return "KAFKA_EVENTS_TOPIC"
}

// Close frees a relay whose Run was never called. After Run it does nothing.
func (r *Relay) Close() error { return errors.Join(r.sender.close(), r.metrics.close()) }

// Run publishes until ctx is done, goes on for what is there already, at most for
// RelayConfig.Drain, and gives its place up. Trouble with the brokers or the
// database never ends it.
func (r *Relay) Run(ctx context.Context) {
	r.note(func(s *RelayStatus) { s.Running = true })
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(r.cfg.Drain, cancel) })()
	for rest := time.Duration(0); pauseFor(ctx, rest); {
		rest = r.turn(work)
	}
	for work.Err() == nil && r.turn(work) == 0 {
		continue // there is more
	}
	if err := errors.Join(r.outbox.Resign(), r.Close()); err != nil {
		r.logger.Warn("relay: end", "error", err)
	}
	r.note(func(s *RelayStatus) { s.Running, s.Leading = false, false })
}

// turn publishes one batch, and says how long to rest: not at all while there is more.
func (r *Relay) turn(ctx context.Context) time.Duration {
	led, err := r.lead(ctx)
	if err == nil && led {
		err = r.tend(ctx)
	}
	some := false
	if err == nil && led {
		some, err = r.publish(ctx)
	}
	if err != nil {
		return r.failed(ctx, err)
	}
	r.pauses.Reset()
	now := r.clock.Now()
	r.note(func(s *RelayStatus) { s.Error, s.ErrorSince, s.LastTurn = "", time.Time{}, now })
	switch {
	case !led:
		return leadPoll
	case some:
		return 0
	default:
		return r.cfg.Poll
	}
}

func (r *Relay) lead(ctx context.Context) (led bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	led, err = r.outbox.Lead(ctx)
	was := r.Status().Leading
	if led != was {
		r.logger.InfoContext(ctx, "relay", "leading", led)
	}
	if !led || !was {
		r.pending, r.counted = nil, time.Time{} // what was read under an earlier lead may be another's by now
	}
	r.note(func(s *RelayStatus) {
		s.Leading = led
		if !led {
			s.Backlog = domain.Backlog{}
		}
	})
	return led, err
}

// tend does what is due now and then.
func (r *Relay) tend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*outboxTimeout)
	defer cancel()
	now := r.clock.Now()
	if now.Sub(r.counted) >= backlogEvery {
		backlog, err := r.outbox.Backlog(ctx)
		if err != nil {
			return err
		}
		r.counted = now
		r.note(func(s *RelayStatus) { s.Backlog = backlog })
	}
	if now.Sub(r.pruned) >= pruneEvery {
		r.pruned = now // what cannot be freed now is freed another time
		freed, err := r.outbox.Prune(ctx, r.cfg.Keep)
		if err != nil {
			return err
		}
		if freed > 0 {
			r.logger.InfoContext(ctx, "relay: freed what was published long ago", "slots", freed)
		}
	}
	return nil
}

// failed remembers the trouble and says how long to wait before the next try.
func (r *Relay) failed(ctx context.Context, err error) time.Duration {
	now := r.clock.Now()
	r.note(func(s *RelayStatus) {
		s.Error = err.Error()
		if s.ErrorSince.IsZero() {
			s.ErrorSince = now
		}
	})
	if ctx.Err() == nil && now.Sub(r.told) >= complainEvery {
		r.told = now
		r.logger.WarnContext(ctx, "relay: not published; it is tried again", "error", err)
	}
	return r.pauses.NextBackOff()
}

// pauseFor waits for d and reports whether ctx is still live.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
