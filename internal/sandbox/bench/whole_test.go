package bench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// wholeLimit is above what a small bench takes on a busy machine.
const wholeLimit = 5 * time.Minute

// binaries builds what is measured.
func binaries(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/", "example.com/billing/cmd/billing", "example.com/billing/cmd/sandbox").CombinedOutput()
	require.NoError(t, err, string(out))
	return Options{
		Billing: filepath.Join(dir, "billing"), Sandbox: filepath.Join(dir, "sandbox"), Scale: minScale, Rounds: 1, Partitions: 2,
		Environ: os.Environ(), Say: t.Logf, Dir: elsewhere(t),
	}
}

// elsewhere is a folder that another user can enter: not so t.TempDir, and the database's user may be another.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "benchtest") //nolint:usetesting // see above
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestASmallBenchMeasuresEverythingAndItsSumsAreRight(t *testing.T) {
	t.Parallel()
	options := binaries(t)
	options.Only = []string{"0ms", "200/s"}
	require.NoError(t, options.Validate())
	ctx, cancel := context.WithTimeout(t.Context(), wholeLimit)
	defer cancel()
	report, err := Measure(ctx, options)
	require.NoError(t, err)
	require.Empty(t, report.Void())
	require.Len(t, report.Runs, 4)
	for i := range report.Runs {
		run := &report.Runs[i]
		require.Equal(t, smallest, run.Records)
		require.Equal(t, 180, run.Charges)
		for what, figure := range map[string]float64{
			"rate": run.Rate, "seconds": run.Seconds, "memory": run.Memory, "in flight": float64(run.InFlight),
			"connections": float64(run.Connections),
		} {
			require.Positive(t, figure, what)
		}
		if run.Seconds > 0.5 { // the kernel counts by hundredths of a second
			require.Positive(t, run.CPU, "CPU")
		}
		require.Equal(t, run.Scenario == "200/s", run.P50 > 0)
		require.GreaterOrEqual(t, run.P99, run.P50)
		if run.Mode == Sequential {
			require.LessOrEqual(t, run.InFlight, int64(options.Partitions), "one at a time per partition")
		}
	}
	require.Positive(t, report.Ceiling[0].Rate)
	require.Positive(t, report.Facts.Fsync)
	require.NotEmpty(t, report.Facts.Postgres)
	require.Contains(t, report.Summary(), "4 runs, every sum right")
	leftovers, err := os.ReadDir(options.Dir)
	require.NoError(t, err)
	require.Empty(t, leftovers)
}

func TestAWorldCanBeFilledAndStagedForOthers(t *testing.T) {
	t.Parallel()
	options := binaries(t)
	ctx, cancel := context.WithTimeout(t.Context(), wholeLimit)
	defer cancel()
	world, err := StartWorld(ctx, &options)
	require.NoError(t, err)
	defer func() { require.NoError(t, world.Stop(ctx)) }()

	requireFill(ctx, t, world)
	requireStage(ctx, t, world)
	requireBrokenOff(ctx, t, world)
	requirePoison(ctx, t, world)
}

// One record that can never be charged changes the sums by what it is itself, and by nothing else.
func requirePoison(ctx context.Context, t *testing.T, world *World) {
	t.Helper()
	kinds := poisons()
	for _, p := range []poison{kinds[1], kinds[len(kinds)-1]} {
		l, err := world.spoil(ctx, smallest, 2, p)
		require.NoError(t, err)
		b := &bench{World: world, options: world.options}
		require.NoError(t, b.poisoned(ctx, "poison", 1, l))
		require.Empty(t, b.report.Runs[0].Void, p.name())
		require.Equal(t, 180, b.report.Runs[0].Charges)
	}
}

// Rows fill processed_event with version 7 ids of the past days, in order.
func requireFill(ctx context.Context, t *testing.T, world *World) {
	t.Helper()
	require.NoError(t, world.fill(ctx, "filled", 1000))
	var rows, versions, disorder int
	var oldest, newest time.Time
	require.NoError(t, world.books.with(ctx, "filled", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE event_id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-a'),
			count(*) FILTER (WHERE event_id < before), min(processed_at), max(processed_at)
			FROM (SELECT *, lag(event_id) OVER (ORDER BY processed_at) AS before FROM processed_event) AS p`).
			Scan(&rows, &versions, &disorder, &oldest, &newest)
	}))
	require.Equal(t, []int{1000, 1000, 0}, []int{rows, versions, disorder})
	require.WithinDuration(t, time.Now().Add(-fillSpan), oldest, time.Hour)
	require.WithinDuration(t, time.Now(), newest, time.Hour)
}

// A stage waits for a billing of others, and says when it has ended.
func requireStage(ctx context.Context, t *testing.T, world *World) {
	t.Helper()
	stage, err := world.NewStage(ctx, smallest, "")
	require.NoError(t, err)
	ended := make(chan struct{})
	close(ended)
	_, err = stage.Await(ctx, ended)
	require.ErrorContains(t, err, "ended by itself")
	require.Contains(t, stage.Environ, "PAYMENT_URL="+world.provider.url)
	lag, err := world.lag(ctx, stage.topic, stage.group)
	require.NoError(t, err)
	require.Equal(t, int64(smallest), lag, "the backlog is there")
	require.NoError(t, stage.Close(ctx))
}

// A run that is broken off is judged by what must never be.
func requireBrokenOff(ctx context.Context, t *testing.T, world *World) {
	t.Helper()
	l, err := world.backlog(ctx, 2000, 2)
	require.NoError(t, err)
	run, err := world.measure(ctx, task{scenario: "short", mode: Sequential, faults: "latency=100ms", load: l, limit: 500 * time.Millisecond})
	require.NoError(t, err)
	require.Empty(t, run.Void)
	require.Less(t, run.Charges, run.Unique)
	require.Positive(t, run.Charges)
}
