package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/postgres"
)

const (
	ownerVar = "POSTGRES_TEST_OWNER"
	limit    = 10 * time.Second
)

// TestMain lets the test binary play the owner of a server in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv(ownerVar) != "" {
		owner()
	}

	os.Exit(m.Run())
}

func TestAnOwnerKilledLeavesNoServer(t *testing.T) {
	t.Parallel()

	self, err := os.Executable()
	require.NoError(t, err)

	cmd := osexec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), ownerVar+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	require.NoError(t, err)

	pid, address, found := strings.Cut(strings.TrimSpace(string(buf[:n])), " ")
	require.True(t, found, "owner said %q", buf[:n])
	require.True(t, present(pid))
	require.Equal(t, "1", query(t, address, "SELECT 1::text"))

	// SIGKILL: the owner can do nothing any more.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	require.Eventually(t, func() bool { return !present(pid) }, limit, 10*time.Millisecond)

	// The next server clears the folder away.
	u, err := url.Parse(address)
	require.NoError(t, err)
	require.DirExists(t, u.Query().Get("host"))
	start(t, postgres.Options{})
	require.NoDirExists(t, u.Query().Get("host"))
}

// present reports whether a process exists and is no zombie.
func present(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}

	_, rest, _ := strings.Cut(string(stat), ") ")

	return !strings.HasPrefix(rest, "Z")
}

func owner() {
	s, err := postgres.Start(context.Background(), postgres.Options{})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}

	fmt.Println(s.PID(), s.SocketURL("postgres"))
	select {}
}
