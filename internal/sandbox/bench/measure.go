package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// readyPoll is the pause between two looks at what is about to happen, donePoll at what takes a while.
	readyPoll = 10 * time.Millisecond
	donePoll  = 50 * time.Millisecond
	// samplePause is the pause between two counts of the connections.
	samplePause = 100 * time.Millisecond
	// runLimit bounds one run: a consumer that stands still fails the bench.
	runLimit = 10 * time.Minute
	// mega is a million bytes, as in MB.
	mega = 1e6
)

// errTooSlow ends a run after its limit, where it is to be broken off.
var errTooSlow = errors.New("limit of the run")

// Run is what was measured in one run.
type Run struct {
	Scenario string `json:"scenario"`
	Mode     Mode   `json:"mode"`
	Round    int    `json:"round"`
	Faults   string `json:"provider"` // as for `sandbox provider --fault`
	// Records and Unique are what the topic held; Charges what was charged of it.
	Records int `json:"records"`
	Unique  int `json:"unique"`
	Charges int `json:"charges"`
	// Seconds from the first request to the last commit, and charges in that time.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"charges_per_second"`
	// Steady is the rate between 5 % and 95 % of the charges committed.
	Steady float64 `json:"steady_charges_per_second"`
	// CPU is the processor time of billing per record, in µs, from its first request on.
	CPU float64 `json:"cpu_us_per_record"`
	// Memory is the most that billing had resident since its start, in MB.
	Memory float64 `json:"peak_memory_mb"`
	// InFlight are the most charges at one time at the provider, Mean their average.
	InFlight int64   `json:"in_flight_most"`
	Mean     float64 `json:"in_flight_mean"`
	// Connections are the most to the database.
	Connections int `json:"connections_most"`
	// P50 and P99 are from the producer's send to the commit, in ms; only where records trickle in.
	P50 float64 `json:"p50_ms,omitempty"`
	P99 float64 `json:"p99_ms,omitempty"`
	// Void says which sums are wrong; empty: all are right.
	Void string `json:"void,omitempty"`
}

// task says what is to be measured.
type task struct {
	scenario string
	mode     Mode
	round    int
	faults   string
	load     *load
	// database is used as it is; empty: a new one, dropped afterwards.
	database string
	// rate is at which the load is produced once billing is ready; 0: it is there already.
	rate float64
	// limit breaks the run off; 0: all is consumed.
	limit time.Duration
	// settings of billing besides those of the mode.
	settings []string
	// beside is done from the first charge on, while the load is consumed, until its ctx ends.
	beside func(context.Context, *measurement) error
}

// measurement is a task under way.
type measurement struct {
	*task
	world    *World
	group    string
	database string
	subject  *subject
	sent     map[int64]time.Time
	meter    Meter
	cpu      time.Duration
	run      Run
}

// measure runs billing once.
func (w *World) measure(ctx context.Context, t task) (run Run, err error) {
	m := &measurement{task: &t, world: w, group: w.name("billing"), database: t.database}
	m.run = Run{
		Scenario: t.scenario, Mode: t.mode, Round: t.round, Faults: t.faults,
		Records: t.load.expected.Records, Unique: t.load.expected.Unique,
	}
	if err := w.provider.prepare(ctx, t.faults); err != nil {
		return run, err
	}
	if m.database == "" {
		m.database = w.name("bench")
		if err := w.postgres.CreateDatabase(ctx, m.database); err != nil {
			return run, err
		}
		defer func() { err = errors.Join(err, w.books.drop(context.WithoutCancel(ctx), m.database)) }()
	}
	if m.subject, err = w.startSubject(t.mode, t.load.topic, m.group, m.database, t.load.partitions, t.settings...); err != nil {
		return run, err
	}
	err = m.consume(ctx)
	if err := errors.Join(err, m.subject.end(ctx)); err != nil {
		return run, fmt.Errorf("%s, %s: %w", t.scenario, t.mode, err)
	}
	return m.run, m.conclude(ctx)
}

// consume follows billing from its first request to its last commit.
func (m *measurement) consume(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("not done after %s", runLimit))
	defer cancel()
	produced := make(chan error, 1)
	if m.rate > 0 {
		if err := m.subject.awaitReady(ctx); err != nil {
			return err
		}
		go func() {
			var err error
			m.sent, err = m.world.trickle(ctx, m.load, m.rate)
			produced <- err
		}()
	} else {
		produced <- nil
	}
	if err := await(ctx, readyTimeout, readyPoll, "the first charge", m.begun(ctx)); err != nil {
		return err
	}
	before, cpuErr := cpuTime(m.subject.PID())
	stop, done := m.sample(ctx), m.accompany(ctx)
	err := m.follow(ctx)
	err = errors.Join(err, stop(), done(), <-produced)
	if cpuErr == nil {
		err = errors.Join(err, m.resources(before))
	}
	return err
}

// accompany does what is to be done beside the load, until it is told to stop.
func (m *measurement) accompany(ctx context.Context) (stop func() error) {
	if m.beside == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		err := m.beside(ctx, m)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // asked to stop in the middle of something
		}
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// begun looks for the first request.
func (m *measurement) begun(ctx context.Context) func() (bool, error) {
	return func() (bool, error) {
		meter, err := m.world.provider.meter(ctx)
		return meter.Posts > 0, errors.Join(err, m.subject.alive())
	}
}

// follow waits until everything is done, or the limit of the task.
func (m *measurement) follow(ctx context.Context) error {
	limited := ctx
	if m.limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, m.limit, errTooSlow)
		defer cancel()
	}
	err := await(limited, runLimit, donePoll, "everything charged", func() (done bool, err error) {
		if m.meter, err = m.world.provider.meter(ctx); err != nil {
			return false, err
		}
		if m.meter.Answered < int64(m.run.Unique) {
			return false, m.subject.alive()
		}
		done, err = m.world.settled(ctx, m.load.topic, m.group, m.database)
		return done, errors.Join(err, m.subject.alive())
	})
	if errors.Is(err, errTooSlow) {
		err = nil
	}
	return err
}

// sample counts connections until it is told to stop.
func (m *measurement) sample(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			var n int
			if n, err = m.world.books.connections(ctx, m.database); err == nil {
				m.run.Connections = max(m.run.Connections, n)
				_ = sleep(ctx, samplePause)
			}
		}
		if ctx.Err() != nil {
			err = nil // asked to stop in the middle of a question
		}
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// resources reads what the process has used, while it is still there.
func (m *measurement) resources(before time.Duration) error {
	after, err := cpuTime(m.subject.PID())
	if err != nil {
		return err
	}
	m.cpu = after - before
	peak, err := peakMemory(m.subject.PID())
	m.run.Memory = float64(peak) / mega
	return err
}

// settled reports whether every offset is committed and nothing is unfinished.
func (w *World) settled(ctx context.Context, topic, group, database string) (bool, error) {
	if lag, err := w.lag(ctx, topic, group); err != nil || lag != 0 {
		return false, err
	}
	some, err := w.books.unfinished(ctx, database)
	return !some, err
}

// lag is the number of offsets that a group has not committed.
func (w *World) lag(ctx context.Context, topic, group string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ends, err := w.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("end of topic %s: %w", topic, err)
	}
	commits, err := w.admin.FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) { // nobody has joined yet
		commits, err = nil, nil
	}
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("offsets of group %s: %w", group, err)
	}
	var lag int64
	for partition, end := range ends[topic] {
		at := int64(0)
		if commit, found := commits.Lookup(topic, partition); found {
			at = max(at, commit.At)
		}
		lag += end.Offset - at
	}
	return lag, nil
}
