package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// testTime bounds the tests of one mutant, hangTime those that are expected to hang.
	testTime = 2 * time.Minute
	hangTime = 30 * time.Second
	// buildTime is what building them may take besides.
	buildTime = 8 * time.Minute
)

// lab is the copy of the tree and where the mutants' files lie. A second run on the
// same repository waits for the first.
type lab struct {
	tree  string // absolute; the same for every run, for the build cache's sake
	files string // outside of any repository
	lock  *os.File

	testTime, hangTime time.Duration // see the constants
}

// newLab copies the tree.
func newLab(ctx context.Context, root string) (*lab, error) {
	home, err := filepath.Abs(filepath.Join(root, ".cache", "mutants"))
	if err != nil {
		return nil, fmt.Errorf("find the copy: %w", err)
	}
	if err := os.MkdirAll(home, 0o750); err != nil {
		return nil, fmt.Errorf("make room for the copy: %w", err)
	}
	l := &lab{tree: filepath.Join(home, "tree"), testTime: testTime, hangTime: hangTime}
	if l.lock, err = os.Create(filepath.Join(home, "lock")); err != nil { //nolint:gosec // in our own folder
		return nil, fmt.Errorf("lock the copy: %w", err)
	}
	if err := syscall.Flock(int(l.lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the copy: %w", err), l.lock.Close())
	}
	if err := snapshot(ctx, root, l.tree); err != nil {
		return nil, errors.Join(fmt.Errorf("copy the tree: %w", err), l.lock.Close())
	}
	if l.files, err = os.MkdirTemp("", "mutants-"); err != nil {
		return nil, errors.Join(fmt.Errorf("make room for mutants: %w", err), l.lock.Close())
	}
	return l, nil
}

// close removes the mutants' files; the copy stays for the next run to write over.
func (l *lab) close() {
	_ = os.RemoveAll(l.files)
	_ = l.lock.Close()
}

// baseline runs every test that a mutant names on the unchanged tree: it has to be
// there, and green.
func (l *lab) baseline(ctx context.Context, mutants []mutant) error {
	named := map[string]map[string]bool{}
	for _, m := range mutants {
		for _, t := range m.tests {
			if named[t.pkg] == nil {
				named[t.pkg] = map[string]bool{}
			}
			for _, name := range t.names {
				named[t.pkg][name] = true
			}
		}
	}
	var errs []error
	for _, pkg := range slices.Sorted(maps.Keys(named)) {
		t := tests{pkg: pkg, names: slices.Sorted(maps.Keys(named[pkg]))}
		fmt.Fprintf(os.Stderr, "without any mutant: %d tests of %s …\n", len(t.names), pkg)
		o, err := l.test(ctx, t, "", l.testTime)
		if err != nil {
			return err
		}
		switch v, detail := o.judge(t, false); {
		case v != verdictCaught && v != verdictSurvived:
			errs = append(errs, fmt.Errorf("without any mutant: %s: %s\n%s", v, detail, strings.Join(o.output, "")))
		case len(o.failed) > 0:
			errs = append(errs, fmt.Errorf("%s is red without any mutant: %s\n%s",
				pkg, strings.Join(slices.Sorted(maps.Keys(o.failed)), " "), strings.Join(o.output, "")))
		}
	}
	return errors.Join(errs...)
}

// test runs some tests of one package, with an overlay or without.
func (l *lab) test(ctx context.Context, t tests, overlay string, limit time.Duration) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+buildTime)
	defer cancel()
	// Without vet: a mutant may look odd, as long as it builds.
	args := []string{"test", "-json", "-count=1", "-vet=off", "-timeout", limit.String(), "-run", "^(" + strings.Join(t.names, "|") + ")$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(args, "./"+t.pkg)...) //nolint:gosec // the mutants' own tests
	command.Dir = l.tree
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the test binary ends with it
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("test %s: %w", t.pkg, ctx.Err())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("test %s: %w", t.pkg, err)
	}
	o := &outcome{}
	o.read(out.Bytes())
	return o, nil
}

// report is what became of one mutant.
type report struct {
	mutant
	verdict verdict
	detail  string
	output  []string // of the tests, where that helps
	took    time.Duration
}

// try tests one mutant.
func (l *lab) try(ctx context.Context, m *mutant) (r report) {
	began := time.Now() // how long it takes, for people
	r.mutant = *m
	defer func() { r.took = time.Since(began) }()
	laid, err := overlay(ctx, m, l.tree, filepath.Join(l.files, m.name))
	if err != nil {
		r.verdict, r.detail = verdictApply, err.Error()
		return r
	}
	limit := l.testTime
	if m.hangs {
		limit = l.hangTime
	}
	var details []string
	for _, t := range m.tests {
		o, err := l.test(ctx, t, laid, limit)
		if err != nil {
			r.verdict, r.detail = verdictBroken, err.Error()
			return r
		}
		v, detail := o.judge(t, m.hangs)
		if v != verdictCaught {
			r.verdict, r.detail, r.output = v, detail, o.output
			return r
		}
		details = append(details, detail)
	}
	r.verdict, r.detail = verdictCaught, strings.Join(details, " ")
	return r
}

// tryAll tests the mutants, some at a time, and returns what became of each in their order.
func (l *lab) tryAll(ctx context.Context, mutants []mutant, jobs int, p *progress) []report {
	reports := make([]report, len(mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(jobs, len(mutants)) {
		workers.Go(func() {
			for i := range next {
				reports[i] = l.try(ctx, &mutants[i])
				p.step(&reports[i])
			}
		})
	}
	for i := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	p.end()
	return reports
}
