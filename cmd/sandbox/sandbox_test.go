package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/process"
)

// patience is for what takes moments on a quiet machine.
const patience = 60 * time.Second

// asSandbox makes this test binary the sandbox itself.
const asSandbox = "SANDBOX_TEST_AS_SANDBOX"

func TestMain(m *testing.M) {
	if os.Getenv(asSandbox) != "" {
		main()
		return
	}
	// Parts stay when their parent goes if SIGHUP is ignored, as under nohup. The
	// tests may run there too: a signal that is caught is not ignored in children.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

// sandbox returns the command `sandbox args…`.
func sandbox(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), asSandbox+"=1")
	return cmd
}

// output runs `sandbox args…` to its end.
func output(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	cmd := sandbox(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, err)
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// part starts `sandbox args…` and returns it with the first line it printed.
func part(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := sandbox(t, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, strings.TrimSpace(line)
}

// end asks a part to end and demands that it does so with 0.
func end(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

func TestUsageErrorsEndWithTwo(t *testing.T) {
	t.Parallel()
	csv := filepath.Join(t.TempDir(), "orders.csv")
	require.NoError(t, os.WriteFile(csv, []byte("order_id,total_amount,currency\n1,1.234,EUR\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no command":               {nil, "a command is needed"},
		"an unknown command":       {[]string{"runn"}, `unknown command "runn"`},
		"an unknown flag":          {[]string{"postgres", "--nope"}, "--nope"},
		"a fault of no kind":       {[]string{"provider", "--fault", "503"}, "--fault"},
		"a topic without a number": {[]string{"broker", "--topic", "orders"}, "name:partitions"},
		"orders without brokers":   {[]string{"orders"}, "brokers"},
		"orders of two sources":    {[]string{"orders", "--brokers", "x", "--records", "1", "--orders", "x.csv"}, "--orders or --records"},
		"a file with a bad line":   {[]string{"orders", "--brokers", "x", "--orders", csv}, "line 2"},
		"records without an end":   {[]string{"run", "--records", "5"}, "--records needs --once"},
		"no billing binary":        {[]string{"run", "--billing", "/nowhere/billing"}, "make build"},
		"nobody to take over":      {[]string{"run", "--joins", "3"}, "--joins 3: needs --instances 2 or more"},
		"a broker of no kind":      {[]string{"run", "--kafka", "rabbit"}, "--kafka rabbit"},
		"a command that is not there": {
			[]string{"postgres", "--", filepath.Join(t.TempDir(), "nothing")}, "no such file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, stderr, code := output(t, c.args...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, c.says)
		})
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run", "broker", "postgres", "provider", "orders"} {
		stdout, _, code := output(t, name, "--help")
		require.Equal(t, exitOK, code)
		require.Contains(t, stdout, "Examples:")
		// Words in backquotes in a flag's help would be taken for the name of its value.
		_, flags, _ := strings.Cut(stdout, "Flags:\n")
		for line := range strings.Lines(flags) {
			require.Regexp(t, `^ +(-\w, )?--[a-z-]+( [a-zA-Z0-9]+)?   `, line)
		}
	}
}

func TestPostgresPassesTheCommandsExitCodeOn(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := output(t, "postgres", "--", "sh", "-c", `echo "$DATABASE_URL"; exit 7`)
	require.Equal(t, 7, code, stderr)
	require.Regexp(t, `^postgres://postgres@127\.0\.0\.1:\d+/billing\?sslmode=disable\n$`, stdout)

	_, stderr, code = output(t, "postgres", "--", "sh", "-c", "kill -TERM $$")
	require.Equal(t, 128+int(syscall.SIGTERM), code, stderr)
}

func TestPostgresRunsUntilItIsEnded(t *testing.T) {
	t.Parallel()
	cmd, url := part(t, "postgres")
	require.True(t, strings.HasPrefix(url, "postgres://"), url)
	end(t, cmd)
}

func TestPostgresListensWhereItIsTold(t *testing.T) {
	t.Parallel()
	ports, err := process.FreePorts(1)
	require.NoError(t, err)
	port := strconv.Itoa(ports[0])
	cmd, url := part(t, "postgres", "--port", port)
	require.Contains(t, url, "127.0.0.1:"+port+"/")
	_, stderr, code := output(t, "postgres", "--port", port)
	require.Equal(t, exitFail, code)
	require.Contains(t, stderr, "port "+port)
	end(t, cmd)
}

func TestTheSecondWishToEndBreaksARunOff(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	billing := filepath.Join(t.TempDir(), "billing") // one that is never ready
	require.NoError(t, os.WriteFile(billing, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	cmd := sandbox(t, "run", "--billing", billing)
	cmd.Env = append(cmd.Env, "TMPDIR="+folder)
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o711)) // the database's user passes through
	require.NoError(t, os.Chmod(folder, 0o711))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	said := func(what string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		require.Fail(t, "it never said "+what, stderr.String())
	}
	said("provider")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	said("once more to break off")
	// The first of them comes too soon, and counts as the echo of the one before.
	tick := time.NewTicker(againAfter / 4)
	defer tick.Stop()
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		ended <- cmd.Wait()
	}()
	for running := true; running; {
		select {
		case <-tick.C:
			_ = cmd.Process.Signal(os.Interrupt)
		case err := <-ended:
			require.Error(t, err)
			running = false
		}
	}
	require.Equal(t, exitFail, cmd.ProcessState.ExitCode(), stderr.String())
	require.Equal(t, "sandbox: broken off: nothing was judged\n", stderr.String())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestARunThatCannotStartForWantOfJarsLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd := sandbox(t, "run", "--kafka", "apache", "--billing", "/bin/true")
	cmd.Dir = t.TempDir() // no repository with jars above it
	cmd.Env = append(cmd.Env, "TMPDIR="+folder)
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "run `make kafka-jars` (it installs Java and Maven where it can)")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheVersionIsPrinted(t *testing.T) {
	t.Parallel()
	stdout, _, code := output(t, "version")
	require.Equal(t, exitOK, code)
	require.Equal(t, "unknown\n", stdout)
}

func TestOrdersGoToTheBrokerWithTheirSums(t *testing.T) {
	t.Parallel()
	server, address := part(t, "broker", "--topic", "orders.confirmed:2")
	stdout, stderr, code := output(t, "orders", "--brokers", address, "--records", "50", "--duplicates", "0.2", "--seed", "1")
	require.Equal(t, exitOK, code, stderr)
	var sent sentSummary
	require.NoError(t, json.Unmarshal([]byte(stdout), &sent))
	require.Equal(t, int64(50), sent.Records)
	require.Equal(t, int64(40), sent.Unique)
	require.Equal(t, int64(10), sent.Same+sent.Republished)
	require.NotEmpty(t, sent.Sums)
	end(t, server)
}

func TestAnEndlessStreamOfOrdersEndsInOrder(t *testing.T) {
	t.Parallel()
	server, address := part(t, "broker")
	cmd := sandbox(t, "orders", "--brokers", address, "--rate", "1000")
	var out strings.Builder
	cmd.Stdout = &out
	lines, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(lines).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "sending to orders.confirmed")
	end(t, cmd)
	require.Contains(t, out.String(), `"records":`)
	end(t, server)
}

func TestTheProviderChargesAndFailsAsTold(t *testing.T) {
	t.Parallel()
	cmd, url := part(t, "provider", "--fault", "503=next1")
	post := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/charges",
			strings.NewReader(`{"orderId":1,"amount":10.50,"currency":"EUR"}`))
		require.NoError(t, err)
		request.Header.Set("Idempotency-Key", "01890a5d-ac96-774b-bcce-b302099a8057")
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusServiceUnavailable, post())
	require.Less(t, post(), 300)
	response, err := http.Get(url + "/healthz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	end(t, cmd)
}

// A part holds its standard output open until it ends: that is the signal that it has.
func TestAPartEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"provider", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self := sandbox(t, name)
			shell := exec.CommandContext(t.Context(), "sh", "-c", `"$0" "$1" & read -r line`, self.Path, name)
			shell.Env = self.Env
			alive, err := shell.StdinPipe()
			require.NoError(t, err)
			out, err := shell.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, shell.Start())
			lines := bufio.NewReader(out)
			_, err = lines.ReadString('\n') // it is up, and has seen its parent
			require.NoError(t, err)
			require.NoError(t, alive.Close())
			ended := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(lines)
				ended <- err
			}()
			select {
			case err := <-ended:
				require.NoError(t, err)
			case <-time.After(patience):
				require.Fail(t, "still there")
			}
			_ = shell.Wait()
		})
	}
}
