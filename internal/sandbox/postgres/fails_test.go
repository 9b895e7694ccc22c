package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/postgres"
)

func TestStartFails(t *testing.T) {
	t.Parallel()

	t.Run("naming the packages where there is no server", func(t *testing.T) {
		t.Parallel()

		_, err := postgres.Start(t.Context(), postgres.Options{Bin: t.TempDir()})
		require.ErrorIs(t, err, postgres.ErrNotInstalled)
		require.ErrorContains(t, err, "apt-get install --no-install-recommends postgresql")
		require.ErrorContains(t, err, "brew install postgresql@17")
	})

	t.Run("with the server's own words", func(t *testing.T) {
		t.Parallel()

		dir := dataFolder(t)
		_, err := postgres.Start(t.Context(), postgres.Options{Dir: dir, Params: map[string]string{"no_such_setting": "1"}})
		require.ErrorContains(t, err, `unrecognized configuration parameter "no_such_setting"`)
		requireNoServer(t, dir)
	})

	t.Run("with initdb's own words", func(t *testing.T) {
		t.Parallel()

		dir := dataFolder(t)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))

		_, err := postgres.Start(t.Context(), postgres.Options{Dir: dir})
		require.ErrorContains(t, err, "exists but is not empty")
		require.FileExists(t, filepath.Join(dir, "mine"))
	})

	t.Run("when its context ends, and leaves no process", func(t *testing.T) {
		t.Parallel()

		// The server says that it is starting before it is ready.
		dir := dataFolder(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := postgres.Start(ctx, postgres.Options{Dir: dir, Log: onWrite(func(string) { cancel() })})
		require.ErrorIs(t, err, context.Canceled)
		requireNoServer(t, dir)
	})
}

// onWrite is a log whose lines are signals.
type onWrite func(line string)

func (f onWrite) Write(p []byte) (int, error) {
	f(string(p))

	return len(p), nil
}

// requireNoServer checks that the data is nobody's: a server removes its pid file last.
func requireNoServer(t *testing.T, data string) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(data, "postmaster.pid"))
}
