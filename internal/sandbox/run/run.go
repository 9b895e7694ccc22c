package run

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// drainTimeout is how long an endless run may take to finish what was sent, once it was told to end.
	drainTimeout = 20 * time.Second
	// collectTimeout bounds the collection of the facts.
	collectTimeout = 3 * time.Minute
)

// errInterrupted is the cause of a run's end when it was told to end before everything was sent.
var errInterrupted = errors.New("interrupted")

// ErrBrokenOff is returned by Run when Options.BreakOff was closed.
var ErrBrokenOff = errors.New("broken off: nothing was judged")

// errUnclean stands for the findings of a report.
var errUnclean = errors.New("not clean")

// errTimeout is the cause when Options.Timeout has passed.
var errTimeout = errors.New("the time of --timeout is over")

// Run runs everything to its end, that of an endless source being the end of
// interrupt, and judges it. The report is valid when the error is nil. Everything that
// was started has ended when it returns.
func Run(interrupt context.Context, o Options, console *Console) (report Report, err error) {
	producer, err := NewProducer(o.Source)
	if err != nil {
		return Report{}, err
	}
	// What ends the work is not the interrupt itself: what is on its way may finish.
	ctx, fail := context.WithCancelCause(context.WithoutCancel(interrupt))
	defer fail(nil)
	r := &runner{options: &o, producer: producer, console: console, fail: fail, stop: make(chan struct{}), began: time.Now()}
	defer context.AfterFunc(interrupt, r.interrupted)()
	go r.awaitBreakOff(ctx)
	r.parts, err = startParts(ctx, &o, fail, console.Say)
	if err != nil {
		err = because(ctx, err)
		return Report{}, errors.Join(err, r.tidy(err))
	}
	facts, err := r.work(ctx)
	if err == nil {
		report = Judge(&facts)
		if r.missing != "" {
			report.fail("done", r.missing)
		}
	}
	err = errors.Join(err, r.parts.stop(ctx))
	if err == nil && !report.Clean {
		return report, r.tidy(errUnclean)
	}
	return report, errors.Join(err, r.tidy(err))
}

// awaitBreakOff ends the work when the run is broken off. It ends with ctx.
func (r *runner) awaitBreakOff(ctx context.Context) {
	select {
	case <-r.options.BreakOff:
		r.fail(ErrBrokenOff)
	case <-ctx.Done():
	}
}

// because prefers the reason that the work was ended for over what its end looked like.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// runner is one run.
type runner struct {
	options   *Options
	producer  *Producer
	console   *Console
	fail      context.CancelCauseFunc
	stop      chan struct{} // closed when an endless run is told to end
	began     time.Time
	parts     *parts
	instances []*instance
	progress  *progress
	sent      Sent
	kills     []Kill
	rolls     []Roll
	members   *members
	missing   string // what was not done in time
}

// interrupted is called when the run is told to end.
func (r *runner) interrupted() {
	if !r.options.Source.Endless() {
		r.fail(errInterrupted)
		return
	}
	r.console.Say("ending: what was sent is finished first, at most %s (once more to break off)", drainTimeout)
	close(r.stop)
}

// work starts billing, lets everything happen, and collects the facts.
func (r *runner) work(ctx context.Context) (Facts, error) {
	bounded, cancel := r.bound(ctx)
	defer cancel()
	if err := r.startBilling(bounded); err != nil {
		return Facts{}, because(ctx, err)
	}
	if err := r.happen(bounded); err != nil {
		return Facts{}, because(ctx, err)
	}
	ctx, cancel = context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	facts, err := r.collect(ctx)
	return facts, because(ctx, err)
}

func (r *runner) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.options.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, r.began.Add(r.options.Timeout), errTimeout)
}

func (r *runner) startBilling(ctx context.Context) error {
	for n := range r.options.Instances {
		i, err := startInstance(r.parts, n+1)
		if err != nil {
			return err
		}
		r.instances = append(r.instances, i)
	}
	for _, i := range r.instances {
		if err := i.awaitReady(ctx); err != nil {
			return err
		}
		r.console.Say("billing %d   %s", i.number, i.statsURL())
	}
	r.members = newMembers(r.instances)
	r.console.Say("ready after %.1f s", time.Since(r.began).Seconds())
	return nil
}

// happen produces, kills and lets instances join and leave, shows how it goes, and returns when all is done or time is up.
func (r *runner) happen(ctx context.Context) error {
	records, unique := r.producer.Expected()
	p := &progress{console: r.console, provider: r.parts.provider.Provider, began: r.began, unique: unique}
	r.progress = p
	r.producer.Brokers, r.producer.Topic = r.parts.brokers, r.options.Topic
	r.producer.Progress = p.sent.Store
	feed := newFeed()
	if r.options.Joins > 0 && records > 0 && !r.options.Backlog {
		r.producer.Hold = feed.wait
	}

	watched, seen := context.WithCancel(ctx)
	var watching errgroup.Group
	watching.Go(func() error { p.run(watched); return nil })
	watching.Go(func() error { p.first(watched); return nil })
	defer func() { seen(); _ = watching.Wait() }()

	end := r.end()
	group, working := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		r.sent, err = r.producer.Produce(working, r.stop)
		if err == nil {
			r.awaitSpent(working, end)
		}
		return err
	})
	group.Go(func() (err error) {
		r.kills, err = r.killer(unique).run(working, end)
		return err
	})
	group.Go(func() (err error) {
		r.rolls, err = r.roller(feed, records, unique).run(working, end)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return r.finish(ctx)
}

// finish waits until all that was sent is finished.
func (r *runner) finish(ctx context.Context) (err error) {
	if r.options.Source.Endless() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, drainTimeout, errInterrupted)
		defer cancel()
	}
	r.missing, err = r.parts.awaitDone(ctx)
	// A part that died is not a lack of time.
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTimeout) && !errors.Is(cause, errInterrupted) {
		return cause
	}
	return err
}

// collect ends billing and asks everybody.
func (r *runner) collect(ctx context.Context) (f Facts, err error) {
	running := r.members.running()
	f = Facts{
		Setup: r.options.setup(), Sent: r.sent, Kills: r.kills, Rolls: r.rolls, Running: len(running), Duration: time.Since(r.began),
	}
	for _, i := range running {
		s, err := i.stats(ctx)
		if err != nil {
			r.console.Say("instance %d: %v", i.number, err)
			continue
		}
		f.Stats = append(f.Stats, s)
	}
	for _, i := range running {
		if err := i.stop(ctx); err != nil {
			f.Disorder = append(f.Disorder, err.Error())
		}
	}
	return f, r.parts.read(ctx, &f)
}
