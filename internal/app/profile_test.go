package app_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/app"
	"example.com/billing/internal/sandbox/bench"
)

// profiled is how many records are consumed under the profiler.
const profiled = 50_000

// BenchmarkServe runs the whole service in this process, and all that is around it
// in others, so that a profile of it shows the service alone: `make profile`.
func BenchmarkServe(b *testing.B) {
	world := startBenchWorld(b)
	for _, provider := range []struct{ name, faults string }{{"0ms", ""}, {"50ms", "latency=50ms"}} {
		b.Run(provider.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(serveBacklog(b, world, provider.faults), "charges/s")
			}
		})
	}
}

// startBenchWorld starts broker, database and provider, as the sandbox's own processes.
func startBenchWorld(b *testing.B) *bench.World {
	b.Helper()
	sandbox := filepath.Join(b.TempDir(), "sandbox")
	build, err := exec.CommandContext(b.Context(), "go", "build", "-o", sandbox, "../../cmd/sandbox").CombinedOutput()
	require.NoError(b, err, string(build))
	world, err := bench.StartWorld(b.Context(), &bench.Options{Sandbox: sandbox, Partitions: 6, Environ: os.Environ()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, world.Stop(context.WithoutCancel(b.Context()))) })
	return world
}

// serveBacklog lets a service finish a backlog and returns its charges per second.
func serveBacklog(b *testing.B, world *bench.World, faults string) float64 {
	b.Helper()
	stage, err := world.NewStage(b.Context(), profiled, faults)
	require.NoError(b, err)
	defer func() { require.NoError(b, stage.Close(b.Context())) }()

	environ := slices.Concat(stage.Environ, []string{"ADMIN_ADDR=127.0.0.1:0", "ADMIN_INSECURE=true"})
	settings, err := app.Load(environ)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	ran, ended := error(nil), make(chan struct{})
	go func() {
		defer close(ended)
		ran = app.Serve(ctx, settings, app.Process{Environ: environ, Out: io.Discard, Err: io.Discard})
	}()

	rate, err := stage.Await(b.Context(), ended)
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		require.FailNow(b, "the service does not stop")
	}
	require.NoError(b, ran)
	require.NoError(b, err)
	return rate
}
