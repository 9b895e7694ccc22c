package process_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/process"
)

// said is a log that a test can wait for.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	line chan struct{}
}

func newSaid() *said { return &said{line: make(chan struct{}, 1024)} }

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line <- struct{}{}

	return s.text.Write(p)
}

func shell(t *testing.T, script string, log *said) *process.Process {
	t.Helper()

	p, err := process.Start(process.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Log: log, DeathSignal: syscall.SIGKILL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Kill() })

	return p
}

func TestStop(t *testing.T) {
	t.Parallel()

	// exec: a shell may not pass signals on to what it waits for.
	const obedient = `echo up; exec sleep 600`

	const deaf = `trap "" TERM; echo up; while :; do sleep 0.01; done`

	for _, tt := range []struct {
		name, script string
		signals      []os.Signal
		want         error
		ended        string
	}{
		{"an obedient process ends by the first signal", obedient, []os.Signal{syscall.SIGTERM, syscall.SIGQUIT}, nil, "signal: terminated"},
		{"a process deaf to the first gets the second", deaf, []os.Signal{syscall.SIGTERM, syscall.SIGUSR1}, nil, "signal: user defined signal 1"},
		{"a process deaf to all is killed, and that is said", deaf, []os.Signal{syscall.SIGTERM}, process.ErrKilled, "signal: killed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			log := newSaid()
			p := shell(t, tt.script, log)
			<-log.line
			require.NoError(t, p.Err(), "it runs")

			require.ErrorIs(t, p.Stop(t.Context(), 300*time.Millisecond, tt.signals...), tt.want)
			<-p.Done()
			require.EqualError(t, p.Err(), tt.ended)
			require.NoError(t, p.Stop(t.Context(), time.Second, syscall.SIGTERM), "once more does nothing")
			require.NoError(t, p.Kill())
		})
	}

	t.Run("the end of the context cuts the grace short", func(t *testing.T) {
		t.Parallel()

		log := newSaid()
		p := shell(t, deaf, log)
		<-log.line

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Stop(ctx, time.Hour, syscall.SIGTERM), process.ErrKilled)
		<-p.Done()
	})
}

func TestOutputGoesToTheLogAndItsEndIsKept(t *testing.T) {
	t.Parallel()

	log := newSaid()
	p := shell(t, `i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done; echo last >&2; exit 3`, log)
	<-p.Done()

	require.EqualError(t, p.Err(), "exit status 3")
	require.True(t, strings.HasPrefix(log.text.String(), "line 0\nline 1\n"))
	require.True(t, strings.HasSuffix(p.Tail(), "line 1999\nlast"))
	require.LessOrEqual(t, len(p.Tail()), 8<<10)
	require.Greater(t, len(p.Tail()), 8<<10-16)
}

func TestAChildIsLeaderOfItsOwnGroup(t *testing.T) {
	t.Parallel()

	log := newSaid()
	p := shell(t, `echo up; exec sleep 600`, log)
	<-log.line

	group, err := syscall.Getpgid(p.PID())
	require.NoError(t, err)
	require.Equal(t, p.PID(), group)
}

func TestRun(t *testing.T) {
	t.Parallel()

	out, err := process.Run(t.Context(), process.Spec{Path: "/bin/sh", Args: []string{"-c", "pwd; echo $FLAG >&2"}, Dir: "/", Env: []string{"FLAG=on"}})
	require.NoError(t, err)
	require.Equal(t, "/\non", out)

	_, err = process.Run(t.Context(), process.Spec{Path: "/bin/sh", Args: []string{"-c", "echo reason; exit 1"}})
	require.EqualError(t, err, "/bin/sh: exit status 1: reason")

	_, err = process.Start(process.Spec{Path: "/no/such/program"})
	require.ErrorIs(t, err, os.ErrNotExist)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	_, err = process.Run(ctx, process.Spec{Path: "/bin/sh", Args: []string{"-c", "exec sleep 600"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestFreePortsAreDistinctAndFree(t *testing.T) {
	t.Parallel()

	ports, err := process.FreePorts(20)
	require.NoError(t, err)

	seen := map[int]bool{}
	for _, port := range ports {
		require.False(t, seen[port])
		seen[port] = true
		require.True(t, port >= 20000 && port < 32000, "below the ports of outgoing connections: %d", port)
	}

	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	require.NoError(t, err)
	require.ErrorIs(t, process.CheckPort(ports[0]), syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	require.NoError(t, process.CheckPort(ports[0]))
}

func TestTempDirRemovesOnlyWhatTheDeadLeft(t *testing.T) {
	t.Parallel()

	base := t.TempDir()
	mine, err := process.TempDir(base, "thing")
	require.NoError(t, err)

	// A process that is over, whose pid nobody else has had time to get.
	over := exec.CommandContext(t.Context(), "/bin/true")
	require.NoError(t, over.Run())

	keep := []string{mine, "thing-1-init", "thing-x-1", "thing-mine", fmt.Sprintf("other-%d-1", over.Process.Pid)}
	remove := fmt.Sprintf("thing-%d-1", over.Process.Pid)

	for _, name := range append(keep[1:], remove) {
		require.NoError(t, os.MkdirAll(filepath.Join(base, name, "sub"), 0o700))
	}

	second, err := process.TempDir(base, "thing")
	require.NoError(t, err)
	require.NotEqual(t, mine, second)
	require.DirExists(t, mine)

	for _, name := range keep[1:] {
		require.DirExists(t, filepath.Join(base, name))
	}

	require.NoDirExists(t, filepath.Join(base, remove))
}
