//go:build apache

package apache_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/apache"
)

func TestStartFails(t *testing.T) {
	t.Parallel()

	t.Run("where its port is taken, be it by another broker", func(t *testing.T) {
		t.Parallel()

		other := start(t, apache.Options{})
		_, digits, err := net.SplitHostPort(other.Addrs()[0])
		require.NoError(t, err)
		port, err := strconv.Atoi(digits)
		require.NoError(t, err)

		dir := t.TempDir()
		_, err = apache.Start(t.Context(), apache.Options{Dir: dir, Port: port})
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		requireNoJava(t, dir)
	})

	t.Run("with the broker's own words", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		_, err := apache.Start(t.Context(), apache.Options{Dir: dir, Params: map[string]string{"num.io.threads": "none"}})
		require.ErrorContains(t, err, "Invalid value none for configuration num.io.threads")
		requireNoJava(t, dir)
	})

	t.Run("when its context ends, and leaves no process", func(t *testing.T) {
		t.Parallel()

		// The first line comes from the controller, which the broker's first answer waits for.
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := apache.Start(ctx, apache.Options{Dir: dir, Log: onWrite(cancel)})
		require.ErrorIs(t, err, context.Canceled)
		requireNoJava(t, dir)
	})
}

// onWrite is a log whose first line is a signal.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()

	return len(p), nil
}

// requireNoJava looks for a process that works in dir.
func requireNoJava(t *testing.T, dir string) {
	t.Helper()

	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	require.NotEmpty(t, links)

	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil {
			require.NotEqual(t, dir, cwd, link)
		}
	}
}

func TestAnOwnerKilledLeavesNoBroker(t *testing.T) {
	t.Parallel()

	self, err := os.Executable()
	require.NoError(t, err)

	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), ownerVar+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	require.NoError(t, err)

	pid, dir, found := strings.Cut(strings.TrimSpace(string(buf[:n])), " ")
	require.True(t, found, "owner said %q", buf[:n])
	require.DirExists(t, dir)
	require.True(t, runs(pid))

	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()

	require.Eventually(t, func() bool { return !runs(pid) }, 10*time.Second, 20*time.Millisecond)

	// The next broker clears the folder away.
	start(t, apache.Options{})
	require.NoDirExists(t, dir)
}

// runs reports whether a process exists and is no zombie.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}

	_, rest, _ := strings.Cut(string(stat), ") ")

	return !strings.HasPrefix(rest, "Z")
}
