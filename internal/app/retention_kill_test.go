package app_test

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/app"
	"example.com/billing/internal/payment/paymenttest"
)

// actAsBilling makes this test binary the service itself when it is given one of its commands, so
// that a test can kill a whole process, or hear all that one says. It does not return then.
func actAsBilling() {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := app.Main(ctx, app.Process{Args: os.Args[1:], Environ: os.Environ(), Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// process is a service in a process of its own.
type process struct {
	service
	cmd *exec.Cmd
}

func (w *world) spawn() *process {
	w.t.Helper()
	p := &process{service: service{t: w.t, Logs: &lockedBuffer{}}}
	p.cmd = exec.CommandContext(w.t.Context(), os.Args[0], "serve")
	p.cmd.Env = append(os.Environ(), w.environ("KAFKA_EVENTS_TOPIC=", "KAFKA_DLQ_TOPIC=", "PAYMENT_URL="+w.payURL, "ADMIN_ADDR=127.0.0.1:0", "ADMIN_INSECURE=true")...)
	p.cmd.Stderr = p.Logs
	require.NoError(w.t, p.cmd.Start())
	w.services = append(w.services, &p.service)
	w.t.Cleanup(p.kill)
	address := regexp.MustCompile(`"msg":"starting","admin":"([^"]+)"`)
	w.eventually("it listens", func() bool {
		if m := address.FindStringSubmatch(p.Logs.String()); m != nil {
			p.Addr = m[1]
		}
		return p.Addr != ""
	})
	return p
}

// kill ends the process as a machine would that loses its power.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) leads() bool {
	return strings.Contains(p.scrape(), "\nbilling_retention_leading 1\n")
}

func TestWhenTheProcessThatDoesRetentionIsKilledAnotherDoesItWithinAMinute(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	leader, other := w.spawn(), w.spawn()
	w.eventually("one of them does it", func() bool {
		if other.leads() {
			leader, other = other, leader
		}
		return leader.leads()
	})
	turns := func() time.Time { return w.retained().StartedAt }
	w.eventually("a turn", func() bool { return !turns().IsZero() })
	for range 20 {
		require.False(t, other.leads(), "exactly one of them: %s", w.running())
	}
	by, killed := w.retained().Instance, time.Now()
	leader.kill()
	w.eventually("the other one's turn", func() bool { return other.leads() && w.retained().Instance != by })
	require.Less(t, time.Since(killed), time.Minute)
}
