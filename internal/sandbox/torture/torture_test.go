package torture_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/torture"
)

// binaries are built once: what is shipped, and the victim.
func binaries(t *testing.T) (billing, victim string) {
	t.Helper()
	dir := t.TempDir()
	billing, victim = filepath.Join(dir, "billing"), filepath.Join(dir, "victim")
	for path, of := range map[string]string{billing: "cmd/billing", victim: "internal/sandbox/torture/victim"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "example.com/billing/"+of).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return billing, victim
}

// A torture of a few seconds: every run of the tests has one. The real ones take minutes.
func TestAShortTortureIsClean(t *testing.T) {
	t.Parallel()
	billing, victim := binaries(t)
	var (
		mu   sync.Mutex
		text bytes.Buffer
	)
	seed := uint64(time.Now().UnixNano())
	o := &torture.Options{
		Billing: billing, Victim: victim, Kafka: testBroker, Duration: 24 * time.Second, Seed: seed,
		Family: torture.FamilyBoth, Rate: 80, Environ: os.Environ(),
		Say: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&text, format+"\n", args...)
		},
	}
	require.NoError(t, o.Validate())
	reports, err := torture.Run(t.Context(), o)
	for i := range reports {
		reports[i].Write(&text, 0)
	}
	require.NoError(t, err, &text)
	line, clean := torture.Verdict(seed, reports)
	require.True(t, clean, "%s\n%s", &text, line)
	require.Len(t, reports, 2)
	inFlight, all := torture.InFlight(reports)
	require.Positive(t, inFlight, &text)
	require.GreaterOrEqual(t, all, inFlight)
	for i := range reports {
		require.Positive(t, reports[i].Run.Captured, &text)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	o := torture.Options{Kafka: "none", Family: "c", Rate: 0, Billing: "/nowhere", Victim: "/nowhere"}
	err := o.Validate()
	for _, complaint := range []string{"--kafka none", "--family c", "--rate 0", "--minutes", "--billing", "--victim"} {
		require.ErrorContains(t, err, complaint)
	}
}
