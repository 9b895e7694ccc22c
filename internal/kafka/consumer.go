package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"example.com/billing/internal/domain"
)

// Biller makes records durable. It is called by several goroutines at once, for
// one partition too, but no two batches at a time hold the same event or order.
type Biller interface {
	// Admit blocks while intake is paused; it returns when a batch may be taken,
	// or ctx's error.
	Admit(ctx context.Context) (domain.Pass, error)
	// Keys returns what stands for the record's event and its order; a record that holds
	// no valid event has none. It may keep in the record what it found there: Bill
	// gets a copy.
	Keys(record *domain.Record) (event, order domain.Key, valid bool)
	// Bill makes every record of the batch durable: finished, duplicate,
	// unfinished with an intent, or parked. The records are of one partition and
	// their offsets rise strictly. An error means that nothing of the batch may be
	// committed; the records are run again, perhaps in other company. Once ctx is done it gives up if no
	// call was sent; a charge in flight is finished and committed all the same,
	// within the charge budget and the commit margin.
	Bill(ctx context.Context, pass domain.Pass, records []domain.Record) error
}

// Consumer is a member of a consumer group. Create it by New, run it once.
type Consumer struct {
	cfg       Config
	client    *confluent.Consumer
	logs      chan confluent.LogEvent
	committer *committer
	crew      *crew
	metrics   *telemetry
	clock     domain.Clock
	logger    *slog.Logger
	root      context.Context // of the lanes; set by Run

	// using is held for reading while another goroutine than the poll loop's is
	// inside the client: destroying it under a call would crash the process.
	using  sync.RWMutex
	closed bool // guarded by using

	check   probe
	resumed chan struct{} // holds a token when a partition was resumed

	restored  chan *restoration // those whose position is known
	restoring sync.WaitGroup    // those who find it out; only the poll loop adds to it
	withheld  map[int32]bool    // given to us by the group and not to the client; the poll loop's alone

	mu       sync.RWMutex // guards what follows; only the poll loop's goroutine writes
	started  bool
	polling  bool
	closing  bool // the rebalance callback only keeps the protocol going
	lanes    map[int32]*lane
	former   map[int32]*lane   // last lane of a partition that left before it had ended
	paused   map[int32]bool    // what we paused, and nothing else
	awaited  map[int32]awaited // not paused, and not heard of since; the poll loop's alone
	owed     map[int32]*restoration
	lastPoll time.Time
	fatal    error

	trouble     atomic.Pointer[trouble] // with the brokers; nil: none
	troubleTold time.Time               // when trouble was last logged; the poll loop's
}

// trouble is an error that the client goes on from by itself.
type trouble struct {
	err   error
	since time.Time
}

// finalCommits is how often the last commit is tried at a shutdown.
const finalCommits = 8

// New returns a consumer that has not joined its group yet. The error joins all
// complaints about cfg, or is the client's about what only it can judge (a
// certificate file, say).
func New(cfg Config, biller Biller, logger *slog.Logger, to Telemetry, clock domain.Clock) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	logger = logger.With("topic", cfg.Topic, "group", cfg.GroupID)
	logs := make(chan confluent.LogEvent, 64)
	client, err := confluent.NewConsumer(cfg.consuming(logs))
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	c := &Consumer{
		cfg: cfg, client: client, logs: logs, clock: clock, logger: logger,
		lanes: map[int32]*lane{}, former: map[int32]*lane{}, paused: map[int32]bool{},
		awaited: map[int32]awaited{}, owed: map[int32]*restoration{}, withheld: map[int32]bool{},
		restored: make(chan *restoration),
		check:    probe{turn: make(chan struct{}, 1)}, resumed: make(chan struct{}, 1),
	}
	c.committer = newCommitter(client, cfg.Topic, cfg.CommitInterval, logger,
		func(ctx context.Context) { c.metrics.commitFailed(ctx) })
	c.committer.faults = cfg.Faults
	if c.metrics, err = newTelemetry(to, cfg.Topic, cfg.GroupID, c.Status); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	c.crew = &crew{
		cfg: cfg, biller: biller, slots: make(chan struct{}, cfg.MaxTransactions), flights: newFlights(),
		note: c.committer.note, metrics: c.metrics, clock: clock, logger: logger,
	}
	return c, nil
}

// Close frees a consumer whose Run was never called. After Run it does nothing.
func (c *Consumer) Close() error {
	c.mu.Lock()
	ran := c.started
	c.started = true
	c.mu.Unlock()
	if ran {
		return nil
	}
	return errors.Join(c.closeClient(), c.metrics.close())
}

// Run joins the group and consumes until ctx is done; then it drains, commits, leaves the
// group and returns nil, or an error naming what could not be ended in time. It
// returns an error within seconds of a fatal error of the client. Where the client cannot be
// closed safely it is left open: the process is expected to end after Run.
func (c *Consumer) Run(ctx context.Context) error {
	c.mu.Lock()
	if c.started {
		c.mu.Unlock()
		return errors.New("kafka consumer: Run after Run or Close")
	}
	c.started, c.polling = true, true
	c.root = context.WithoutCancel(ctx)
	c.mu.Unlock()

	aside, endAside := context.WithCancel(c.root)
	var helpers sync.WaitGroup
	helpers.Go(func() { c.committer.run(aside) })
	helpers.Go(func() { c.watchEnds(aside) })
	logsEnd := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() { forwardLogs(c.logger, c.logs, logsEnd) })

	failure := c.consume(ctx)
	lanes := c.takeAll() // from here on nothing new is taken
	c.mu.Lock()
	c.polling = false
	c.mu.Unlock()
	if failure != nil {
		c.abandon(lanes, failure)
	} else {
		failure = c.finish(lanes)
	}
	endAside()
	helpers.Go(c.restoring.Wait)
	switch returned := within(fatalGrace, helpers.Wait); {
	case c.fatalError() != nil: // no leaving after that
	case !returned:
		failure = errors.Join(failure, errors.New("kafka: a question to the brokers did not return; the client is left open"))
	case !c.committer.rest(): // closing under a call would crash; whether it mattered, finish has said
		c.logger.Warn("a commit has not returned; the client is left open, and the group will notice by the session timeout that we left")
	default:
		failure = errors.Join(failure, c.leave())
	}
	close(logsEnd)
	logging.Wait()
	return errors.Join(failure, c.metrics.close())
}

// consume polls until ctx is done (nil) or the client cannot go on.
func (c *Consumer) consume(ctx context.Context) error {
	if err := c.client.Subscribe(c.cfg.Topic, c.onRebalance); err != nil {
		return c.fail(fmt.Errorf("subscribe to %s: %w", c.cfg.Topic, err))
	}
	for ctx.Err() == nil && c.fatalError() == nil {
		c.handle(c.client.Poll(c.tend()))
	}
	return c.fatalError()
}

// finish drains all lanes and commits what they made durable.
func (c *Consumer) finish(lanes []*lane) error {
	c.logger.Info("draining", "partitions", len(lanes))
	left := drain(lanes, c.cfg.DrainTimeout)
	var err error
	if left > 0 {
		err = fmt.Errorf("kafka: %d batches did not end within %s", left, c.cfg.DrainTimeout+cancelGrace)
	}
	refused := c.release(lanes, finalCommits)
	if isCode(refused, confluent.ErrAssignmentLost) {
		// The group has given our partitions away meanwhile, as it may: what is not
		// committed comes to their next owner once more, as duplicates.
		c.logger.Warn("left without a commit: the assignment was lost", "error", refused)
		refused = nil
	}
	return errors.Join(err, refused)
}

// abandon ends the lanes after a fatal error: what is in flight may record its
// answers for a moment longer, but no offset of it can be committed.
func (c *Consumer) abandon(lanes []*lane, cause error) {
	c.logger.Error("fatal client error; ending", "error", cause)
	for _, l := range lanes {
		c.committer.disown(l)
		l.cancel()
	}
	drain(lanes, fatalGrace)
}

// within reports whether wait returned in time; if not, it is left running.
func within(limit time.Duration, wait func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
