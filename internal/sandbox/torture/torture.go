package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"example.com/billing/internal/sandbox/run"
)

const (
	// endTimeout bounds the wait for the end of all that was sent, once nothing is disturbed any more.
	endTimeout = 3 * time.Minute
	endPoll    = 200 * time.Millisecond
	// stuckAfter is how long the end may take before the embedded broker is taken to be stuck.
	stuckAfter = time.Minute
	// endLooks is how often in a row everything must look done.
	endLooks = 3
	// readTimeout bounds the reading of what is left behind.
	readTimeout = 4 * time.Minute
)

// Run tortures each family that is asked for, one after another. The reports are valid
// when the error is nil. Everything that was started has ended when it returns.
func Run(ctx context.Context, o *Options) ([]Report, error) {
	var reports []Report
	for _, f := range o.families() {
		r, err := one(ctx, o, f)
		if err != nil {
			return reports, fmt.Errorf("family %s: %w", f.name, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// one tortures one family in a world of its own.
func one(ctx context.Context, o *Options, f family) (r Report, err error) {
	w, err := build(ctx, o, f)
	if err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, w.stop(ctx), w.tidy(err == nil && r.Clean))
	}()
	if err := w.begin(ctx); err != nil {
		return r, err
	}
	l := &load{brokers: w.brokers.direct(), seed: f.seed, rate: o.Rate * f.load}
	stop, loaded := make(chan struct{}), make(chan error, 1)
	striking, cancel := context.WithTimeout(ctx, f.duration)
	go func() {
		defer cancel() // without a load there is nothing to disturb
		loaded <- l.run(ctx, stop)
	}()
	err = w.torment(striking)
	close(stop)
	if err = errors.Join(err, <-loaded, context.Cause(ctx)); err != nil {
		return r, err
	}
	missing, err := w.finish(ctx)
	if err != nil {
		return r, err
	}
	facts, err := w.collect(ctx, l)
	if err != nil {
		return r, err
	}
	return w.judge(&facts, missing), nil
}

// begin starts the victims of the beginning.
func (w *world) begin(ctx context.Context) error {
	setup := rand.New(rand.NewPCG(w.family.seed, streamSetup+1)) //nolint:gosec // repeatable on purpose
	for n := range maxMembers {
		m, err := w.addMember(n + 1)
		if err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	for _, m := range w.members[:2+setup.IntN(maxMembers-1)] {
		if err := m.start(ctx); err != nil {
			return err
		}
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish waits until all that was sent is done. What is missing then is a finding.
func (w *world) finish(ctx context.Context) (missing string, err error) {
	w.say("nothing is disturbed any more")
	for _, m := range w.these(down) {
		if err := m.start(ctx); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	stuck := time.AfterFunc(stuckAfter, func() { w.unwedge(ctx) })
	defer stuck.Stop()
	for looks := 0; looks < endLooks; looks++ {
		rests, err := w.witness.Rests(ctx)
		if err == nil && rests != "" {
			missing, looks = rests, -1
		}
		if err != nil {
			missing, looks = err.Error(), -1
		}
		if !pause(ctx, endPoll) {
			return fmt.Sprintf("not done %s after the last fault: %s", endTimeout, missing), nil
		}
	}
	w.say("all is done")
	return "", nil
}

// collect ends the victims and asks everybody.
func (w *world) collect(ctx context.Context, l *load) (f run.Facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	f.Setup = run.Setup{
		Broker: w.options.Kafka, Partitions: partitions, Seed: w.family.seed, Faulty: true, IgnoreKeys: w.family.ignoreKeys, Disturbed: true,
	}
	f.Sent = l.soFar()
	running := w.these(up)
	f.Setup.Instances, f.Running = len(running), len(running)
	for _, m := range running {
		s, err := w.witness.Stats(ctx, m.base)
		if err != nil {
			w.record.complain("%v", err)
			continue
		}
		f.Stats = append(f.Stats, s)
	}
	for _, m := range running {
		m.leave(ctx)
	}
	f.Disorder = w.record.disorder
	f.Duration = time.Since(w.began)
	return f, w.witness.Read(ctx, &f)
}

// tidy removes the folder, unless it may explain what went wrong.
func (w *world) tidy(clean bool) error {
	if clean && !w.options.Keep {
		return os.RemoveAll(w.dir)
	}
	kept := filepath.Join(filepath.Dir(w.dir), "billing-torture-"+filepath.Base(w.dir))
	if err := os.Rename(w.dir, kept); err != nil {
		return fmt.Errorf("keep the folder: %w", err)
	}
	w.say("kept: %s", kept)
	return nil
}
