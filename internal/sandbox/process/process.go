package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// pipeDelay bounds the wait for grandchildren that still hold the output pipe after the server itself is gone.
	pipeDelay = time.Second
	// killWait bounds the wait for a process after SIGKILL. Only a process stuck in the kernel needs longer.
	killWait = 10 * time.Second
)

// ErrKilled is returned by [Process.Stop] when the process ignored every signal in time and had to be killed.
var ErrKilled = errors.New("had to be killed")

// Identity is the user that a server runs as.
type Identity struct {
	UID, GID uint32
}

// Spec says what to run.
type Spec struct {
	// Path and Args are the program and its arguments, without the program's name.
	Path string
	Args []string
	// Dir is the working directory; it must be open to the user of As.
	Dir string
	// Env is the environment; nil passes the sandbox's own.
	Env []string
	// As is the user to run as; nil keeps the sandbox's own. Only root may set it.
	As *Identity
	// Log receives standard output and error; nil discards them. The last few KiB are always kept for [Process.Tail].
	Log io.Writer
	// DeathSignal is what the kernel sends when the sandbox dies (Linux only).
	DeathSignal syscall.Signal
}

// Command turns a spec into a command with its process attributes but without output, for short runs.
func Command(ctx context.Context, spec Spec) *exec.Cmd {
	cmd := exec.CommandContext(ctx, spec.Path, spec.Args...) //nolint:gosec // running the given program is the purpose
	cmd.Dir, cmd.Env = spec.Dir, spec.Env
	cmd.SysProcAttr = attributes(spec)
	cmd.WaitDelay = pipeDelay

	return cmd
}

// Run runs a short-lived command to its end and returns its output, which is part of the error too. It ends with ctx.
func Run(ctx context.Context, spec Spec) (string, error) {
	// The death signal follows the thread that forks, so the thread must live as long as the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	out := &tail{}
	cmd := Command(ctx, spec)
	cmd.Stdout, cmd.Stderr = out, out

	if err := cmd.Run(); err != nil {
		// The command only knows that it was killed, not by whom.
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}

		return out.String(), fmt.Errorf("%s: %w: %s", spec.Path, err, out)
	}

	return out.String(), nil
}

// Process is a running server. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the server and returns once it runs, or cannot. The server lives until [Process.Stop], [Process.Kill] or its own end.
func Start(spec Spec) (*Process, error) {
	p := &Process{out: &tail{}, done: make(chan struct{})}
	// Not bound to a context: a server is ended by a signal and a wait, never by the end of whatever started it.
	p.cmd = Command(context.Background(), spec)

	var w io.Writer = p.out
	if spec.Log != nil {
		w = io.MultiWriter(p.out, spec.Log)
	}

	p.cmd.Stdout, p.cmd.Stderr = w, w
	started := make(chan error, 1)

	go p.own(started)

	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}

	return p, nil
}

// own starts the command and waits for it on one thread, because the death signal follows the thread that forked: were it
// to end (the runtime may do so with any idle one), the server would get the signal with the sandbox still alive.
func (p *Process) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	started <- err

	if err != nil {
		return
	}

	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the process id of the server.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the server has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the server ended; it is nil while it runs and after exit code 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Tail is the last output of the server, at most 8 KiB, for error messages.
func (p *Process) Tail() string { return p.out.String() }

// Signal sends a signal to the server. To an ended one it does nothing.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", sig, p.PID(), err)
	}

	return nil
}

// Stop sends the signals one after another, each with grace to take effect, and SIGKILL at last; the end of ctx goes to SIGKILL at
// once. When it returns nil or [ErrKilled] the server is gone. Stopping an ended server does nothing.
func (p *Process) Stop(ctx context.Context, grace time.Duration, signals ...os.Signal) error {
	for _, sig := range signals {
		if err := p.Signal(sig); err != nil {
			return err
		}

		if p.wait(ctx, grace) {
			return nil
		}
	}

	if err := p.Kill(); err != nil {
		return err
	}

	return fmt.Errorf("process %d: %w", p.PID(), ErrKilled)
}

// Kill ends the server with SIGKILL, as a crash would, and waits until it is gone (at most 10 s).
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}

	if !p.wait(context.Background(), killWait) {
		return fmt.Errorf("process %d: still there %s after SIGKILL", p.PID(), killWait)
	}

	return nil
}

// wait reports whether the server ended before limit and before ctx.
func (p *Process) wait(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()

	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}

	// A server that ended at the very same moment has ended.
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
