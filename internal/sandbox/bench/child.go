package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// childStart bounds the start of a part.
	childStart = 30 * time.Second
	// childGrace bounds its orderly end.
	childGrace = 15 * time.Second
)

// child is a part of the world in a process of its own.
type child struct {
	*process.Process
	address string
}

// startChild starts a command of the sandbox and waits for the line with its address, which begins with prefix.
func startChild(ctx context.Context, spec process.Spec, prefix string) (*child, error) {
	line := &firstLine{prefix: prefix, next: spec.Log, found: make(chan string, 1)}
	spec.Log, spec.DeathSignal = line, syscall.SIGKILL
	proc, err := process.Start(spec)
	if err != nil {
		return nil, err
	}
	c := &child{Process: proc}
	ctx, cancel := context.WithTimeoutCause(ctx, childStart, fmt.Errorf("%v: no address within %s", spec.Args, childStart))
	defer cancel()
	select {
	case c.address = <-line.found:
		return c, nil
	case <-proc.Done():
		return nil, fmt.Errorf("%v ended: %s", spec.Args, proc.Tail())
	case <-ctx.Done():
		_ = proc.Kill()
		return nil, context.Cause(ctx)
	}
}

// end asks it to end, and sees to it that it does.
func (c *child) end(ctx context.Context) error { return c.Stop(ctx, childGrace, syscall.SIGTERM) }

// firstLine passes output on until it has seen the line that begins with prefix, and after.
type firstLine struct {
	prefix string
	next   io.Writer
	found  chan string

	mu   sync.Mutex
	done bool
	buf  []byte
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		f.buf = append(f.buf, p...)
		f.look()
	}
	if f.next != nil {
		return f.next.Write(p)
	}
	return len(p), nil
}

// look takes whole lines from the buffer.
func (f *firstLine) look() {
	for !f.done {
		line, rest, whole := bytes.Cut(f.buf, []byte("\n"))
		if !whole {
			return
		}
		f.buf = rest
		if text := strings.TrimSpace(string(line)); strings.HasPrefix(text, f.prefix) {
			f.done, f.buf = true, nil
			f.found <- text
		}
	}
}

// environ is what a child gets of the sandbox's environment: a setting of billing that
// happens to stand there would change what is measured. That of an exporter of traces
// is let through, so that its cost can be measured.
func environ(all []string, own ...string) []string {
	pass := []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "GODEBUG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT"}
	var kept []string
	for _, pair := range all {
		if name, _, _ := strings.Cut(pair, "="); slices.Contains(pass, name) || strings.HasPrefix(name, "OTEL_") {
			kept = append(kept, pair)
		}
	}
	return append(kept, own...)
}

// openLog opens the log of a part.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // a path of our own
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}
