package run_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/run"
)

// bound is above what a run takes on a busy machine, and below the patience of go test.
const bound = 4 * time.Minute

// billing is the path of the binary under test.
var billing string

// worlds bounds the runs at a time: each has a broker, a database and a service or two on the same few processors.
var worlds = make(chan struct{}, 2)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "billingtest")
	if err != nil {
		panic(err)
	}
	billing = filepath.Join(dir, "billing")
	build := exec.Command("go", "build", "-o", billing, "example.com/billing/cmd/billing")
	build.Stderr = os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build billing:", err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// screen is what a console writes to; lines can be waited for.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen map[string]chan string // by pattern
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	for pattern, found := range s.seen {
		if m := regexp.MustCompile(pattern).FindString(s.text.String()); m != "" {
			found <- m
			delete(s.seen, pattern)
		}
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns a channel that receives the first match of a pattern.
func (s *screen) await(pattern string) <-chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(chan string, 1)
	if s.seen == nil {
		s.seen = make(map[string]chan string)
	}
	s.seen[pattern] = found
	return found
}

// until waits for a line, which must come before the run ends.
func until(t *testing.T, line <-chan string, done <-chan struct{}, s *screen) string {
	t.Helper()
	select {
	case found := <-line:
		return found
	case <-done:
		require.Fail(t, "the run ended too soon", s.String())
		return ""
	}
}

// options waits for a place among the worlds and returns those of a run in it.
func options(t *testing.T, change func(*run.Options)) run.Options {
	t.Helper()
	worlds <- struct{}{}
	t.Cleanup(func() { <-worlds })
	o := run.Options{
		Billing: billing, Kafka: testBroker, Topic: "orders.confirmed", Group: "billing-order-confirmed", Partitions: 6,
		Source:    run.Source{Records: 1000, Duplicates: 0.2, Seed: 7},
		Instances: 1, Timeout: bound, Environ: os.Environ(),
	}
	change(&o)
	require.NoError(t, o.Validate())
	return o
}

func failed(r run.Report) (names []string) {
	for _, line := range r.Lines {
		if line.Verdict == run.Failed {
			names = append(names, line.Name+": "+line.Note)
		}
	}
	return names
}

// requireTidy demands that the run's folder, named on the screen, is no more.
func requireTidy(t *testing.T, s *screen) {
	t.Helper()
	folder := regexp.MustCompile(`run folder +(\S+)`).FindStringSubmatch(s.String())
	require.Len(t, folder, 2)
	require.NoDirExists(t, folder[1])
}

func TestARunWithAKillAndTwoInstancesIsClean(t *testing.T) {
	t.Parallel()
	s := &screen{}
	r, err := run.Run(t.Context(), options(t, func(o *run.Options) { o.Instances, o.Kills = 2, 1 }), run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.Empty(t, failed(r), s)
	require.Equal(t, int64(1000), r.Records)
	require.Equal(t, int64(800), r.Captured)
	require.Len(t, r.Kills, 1)
	require.Contains(t, s.String(), "first charge after ")
	require.Contains(t, s.String(), "kill -9 of instance ")
	requireTidy(t, s)
}

// With so few orders the later kills have nothing left to fall into.
func TestARunThatIsDoneBeforeItsKillsEndsAndSaysHowManyWereMade(t *testing.T) {
	t.Parallel()
	s := &screen{}
	o := options(t, func(o *run.Options) { o.Kills, o.Source.Records = 20, 10 })
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.Equal(t, []string{"kills: of 20 asked for: all was done before the others; give it more records"}, failed(r), s)
	require.Less(t, len(r.Kills), 20)
	require.Equal(t, int64(8), r.Captured)
	removeKept(t, s)
}

func TestAnEndlessRunEndsWhenToldTo(t *testing.T) {
	t.Parallel()
	s := &screen{}
	first, stats := s.await(`first charge after .*\n`), s.await(`http\S+/api/v1/dedup/stats\S*`)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o := options(t, func(o *run.Options) { o.Source.Records, o.Source.Rate = 0, 50 })
	var (
		r    run.Report
		err  error
		done = make(chan struct{})
	)
	go func() {
		defer close(done)
		r, err = run.Run(ctx, o, run.NewConsole(s, false))
	}()
	page := until(t, stats, done, s)
	until(t, first, done, s)
	response, pageErr := http.Get(page)
	require.NoError(t, pageErr)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	interrupt()
	<-done
	require.NoError(t, err, s)
	require.Empty(t, failed(r), s)
	require.Equal(t, r.Unique, r.Posts)
	require.Positive(t, r.Captured)
	_, pageErr = http.Get(page)
	require.ErrorContains(t, pageErr, "refused", "billing has ended")
	requireTidy(t, s)
}

func TestADoubleChargeIsFound(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("503-after=next1,ignore-keys")
	require.NoError(t, err)
	s := &screen{}
	o := options(t, func(o *run.Options) { o.Source.Records, o.Faults = 50, faults })
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.False(t, r.Clean)
	require.Equal(t, int64(1), r.DoubleCharges)
	require.Contains(t, strings.Join(failed(r), "\n"), "double charges: 1 of a key, 1 of an order")
	kept := regexp.MustCompile(`logs of what went wrong: (\S+)`).FindStringSubmatch(s.String())
	require.Len(t, kept, 2)
	require.FileExists(t, filepath.Join(kept[1], "billing-1.log"))
	require.NoError(t, os.RemoveAll(kept[1]))
}

func TestWorkThatIsNotDoneInTimeIsNamed(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("503=1@order:7")
	require.NoError(t, err)
	s := &screen{}
	o := options(t, func(o *run.Options) { o.Source.Records, o.Faults, o.Timeout = 50, faults, 30*time.Second })
	r, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.NoError(t, err, s)
	require.Equal(t, int64(1), r.Unfinished)
	require.Equal(t, int64(1), r.Lost)
	require.Regexp(t, `done: the time of --timeout is over: .*1 intents (unknown|calling|waiting) \(claimed\)`, strings.Join(failed(r), "\n"))
	removeKept(t, s)
}

func TestABillingThatEndsByItselfEndsTheRunWithItsLastLines(t *testing.T) {
	t.Parallel()
	s := &screen{}
	o := options(t, func(o *run.Options) { o.Env = []string{"CHARGE_BUDGET=soon"} })
	_, err := run.Run(t.Context(), o, run.NewConsole(s, false))
	require.ErrorContains(t, err, "billing instance 1 ended by itself: exit status 2")
	require.ErrorContains(t, err, `CHARGE_BUDGET: "soon"`)
	removeKept(t, s)
}

func TestARunThatIsInterruptedBeforeItsEndSaysSo(t *testing.T) {
	t.Parallel()
	s := &screen{}
	ready := s.await(`ready after`)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o := options(t, func(o *run.Options) { o.Source.Rate = 10 })
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = run.Run(ctx, o, run.NewConsole(s, false))
	}()
	until(t, ready, done, s)
	interrupt()
	<-done
	require.ErrorContains(t, err, "interrupted")
	removeKept(t, s)
}

func removeKept(t *testing.T, s *screen) {
	t.Helper()
	kept := regexp.MustCompile(`logs of what went wrong: (\S+)`).FindStringSubmatch(s.String())
	require.Len(t, kept, 2)
	require.DirExists(t, kept[1])
	require.NoError(t, os.RemoveAll(kept[1]))
}
