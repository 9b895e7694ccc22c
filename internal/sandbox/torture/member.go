package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
	"example.com/billing/internal/sandbox/torture/control"
)

const (
	// readyTimeout bounds the start of a victim while nothing is disturbed.
	readyTimeout = 60 * time.Second
	readyPoll    = 50 * time.Millisecond
	// leaveGrace is above SHUTDOWN_TIMEOUT.
	leaveGrace = 40 * time.Second
	// deathTimeout bounds the end of a victim that has said that it dies.
	deathTimeout = 10 * time.Second
)

// state is that of a member.
type state int

const (
	down   state = iota // not running
	up                  // running
	frozen              // stopped by SIGSTOP
)

// member is a place for a victim, and those that take it one after another.
type member struct {
	world  *world
	number int
	line   *control.Line
	socket string
	base   string // of its admin API

	mu     sync.Mutex
	state  state
	proc   *process.Process
	doomed bool // its end is our doing
}

func (w *world) addMember(number int) (*member, error) {
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	m := &member{
		world: w, number: number, socket: filepath.Join(w.dir, fmt.Sprintf("victim-%d.sock", number)),
		base: fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
	}
	m.line, err = control.Listen(m.socket, func(n int) {
		select {
		case w.record.reached <- reached{m, n}:
		default: // nobody waits for them
		}
	})
	if err != nil {
		return nil, err
	}
	w.onStop(func(context.Context) error { return errors.Join(m.kill(), m.line.Close()) })
	return m, nil
}

func (m *member) set(s state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

func (m *member) is(s state) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state == s
}

// doom says whether the victim's end would be our doing.
func (m *member) doom(doomed bool) *process.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed = doomed
	return m.proc
}

// start starts a victim and returns when it takes orders.
func (m *member) start(ctx context.Context) error {
	w := m.world
	log, err := w.log(fmt.Sprintf("victim-%d.log", m.number))
	if err != nil {
		return err
	}
	proc, err := process.Start(process.Spec{
		Path: w.options.Victim, Args: []string{m.socket, "serve"}, Dir: w.dir, Log: log, DeathSignal: syscall.SIGKILL,
		Env: append(passed(w.options.Environ), append(slices.Clone(w.env), "ADMIN_ADDR="+strings.TrimPrefix(m.base, "http://"))...),
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.proc, m.state, m.doomed = proc, up, false
	m.mu.Unlock()
	go m.watch(proc)
	if err := m.line.Accept(ctx, proc.Done()); err != nil {
		return fmt.Errorf("victim %d: %w: %s", m.number, err, proc.Tail())
	}
	return nil
}

// passed is the part of the environment that is no setting of billing.
func passed(environ []string) []string {
	names := []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "GODEBUG", "GOTRACEBACK", "GOMAXPROCS", "GORACE"}
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(names, name)
	})
}

// watch complains about a victim that ends by itself.
func (m *member) watch(proc *process.Process) {
	<-proc.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != proc {
		return
	}
	m.state = down
	if !m.doomed {
		m.world.record.complain("victim %d ended by itself: %v: %s", m.number, cmp.Or(proc.Err(), errEndedWell), lastLine(proc.Tail()))
	}
}

var errEndedWell = errors.New("exit status 0")

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// kill ends the victim with -9, and waits until it is gone.
func (m *member) kill() error {
	proc := m.doom(true)
	if proc == nil {
		return nil
	}
	return proc.Kill()
}

// uncommitted is in the last words of a victim whose last commit of offsets was not answered.
const uncommitted = "billing: commit offsets: context deadline exceeded"

// leave asks the victim to end; it must do so in order.
func (m *member) leave(ctx context.Context) {
	proc := m.doom(true)
	if err := proc.Stop(ctx, leaveGrace, syscall.SIGTERM); err != nil {
		m.world.record.complain("victim %d, asked to end: %v", m.number, err)
	} else if err := proc.Err(); err != nil && strings.Contains(proc.Tail(), uncommitted) {
		// All is durable; the brokers did not answer the last commit in time, so that some comes again.
		m.world.record.uncommit()
	} else if err != nil {
		m.world.record.complain("victim %d, asked to end: %v: %s", m.number, err, lastLine(proc.Tail()))
	}
	m.set(down)
}

// gone waits for the end of a victim that has said that it dies.
func (m *member) gone() error {
	proc := m.doom(true)
	select {
	case <-proc.Done():
		m.set(down)
		return nil
	case <-time.After(deathTimeout):
		return fmt.Errorf("victim %d does not die", m.number)
	}
}

// awaitReady waits until the victim is ready.
func (m *member) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("victim %d is not ready after %s", m.number, readyTimeout))
	defer cancel()
	for !m.ready(ctx) {
		if !pause(ctx, readyPoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (m *member) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// these returns the members in a state.
func (w *world) these(s state) []*member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *member) bool { return !m.is(s) })
}
