package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/store/storetest"
)

// nobody is where no broker listens.
const nobody = "127.0.0.1:1"

// saying runs a command in a process of its own, and returns all that it said on standard error: the
// Kafka client is not ours, and would write there past us.
func saying(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(slices.Clip(environ), "KAFKA_BROKERS="+nobody)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	var failed *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &failed)
	require.Equal(t, 1, failed.ExitCode(), errs.String())
	return errs.String()
}

func TestWhereNoBrokerListensACommandSaysSoOnceAndOfWhom(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"offsets show":  {[]string{"offsets", "show"}, "billing: brokers " + nobody + ": describe group "},
		"offsets reset": {[]string{"offsets", "reset", "--to", "earliest", "--dry-run"}, "billing: brokers " + nobody + ": describe group "},
		"audit":         {[]string{"audit"}, "billing: range: brokers " + nobody + ": metadata of "},
	} {
		for _, level := range []string{"info", "debug"} {
			t.Run(name+" "+level, func(t *testing.T) {
				t.Parallel()
				errs := saying(t, []string{"DATABASE_URL=" + url, "PAYMENT_URL=http://" + nobody, "LOG_LEVEL=" + level}, test.args...)
				lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
				require.True(t, strings.HasPrefix(lines[len(lines)-1], test.says), errs)
				if level == "info" {
					require.Len(t, lines, 1, errs)
					return
				}
				require.Greater(t, len(lines), 1, "the client's own lines")
				for _, line := range lines[:len(lines)-1] {
					require.Contains(t, line, `level=DEBUG msg="kafka client"`)
				}
				require.Contains(t, errs, "Connection refused")
			})
		}
	}
}

// Also while the service still waits for its brokers.
func TestWhereNoBrokerListensTheServiceSaysNothingPastItsLog(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve")
	cmd.Env = []string{
		"DATABASE_URL=" + storetest.URL(t), "PAYMENT_URL=http://" + nobody, "KAFKA_BROKERS=" + nobody,
		"ADMIN_ADDR=127.0.0.1:0", "SHUTDOWN_TIMEOUT=30s",
	}
	logs := &lockedBuffer{}
	cmd.Stderr = logs
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), `"neighbour":"kafka"`) }, patience, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // it has not begun, so that there is nothing to drain
	require.Contains(t, logs.String(), "brokers "+nobody+": describe topics")
	for line := range strings.Lines(logs.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}
