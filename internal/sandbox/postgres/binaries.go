package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/billing/internal/sandbox/process"
)

// ErrNotInstalled is returned by Start where no PostgreSQL server is found.
var ErrNotInstalled = errors.New("no PostgreSQL server (initdb and postgres) on this machine: install it " +
	"(Debian: apt-get install --no-install-recommends postgresql; Homebrew: brew install postgresql@17)")

// configTimeout bounds `pg_config --bindir`.
const configTimeout = 10 * time.Second

// findBinaries returns the folder of initdb and postgres: the given one only, or else the first that has both. pg_config comes last: on
// Debian it belongs to the client library and may name a folder without a server.
func findBinaries(ctx context.Context, given string) (string, error) {
	if given != "" {
		if !hasServer(given) {
			return "", fmt.Errorf("%s: %w", given, ErrNotInstalled)
		}

		return given, nil
	}

	var candidates []string

	if initdb, err := exec.LookPath("initdb"); err == nil {
		// A link in /usr/bin stands alone; the server is beside what it points to.
		if target, err := filepath.EvalSymlinks(initdb); err == nil {
			candidates = append(candidates, filepath.Dir(target))
		}
	}

	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                               // Debian
		"/opt/homebrew/opt/postgresql@*/bin",                      // Homebrew, Apple silicon
		"/usr/local/opt/postgresql@*/bin",                         // Homebrew, Intel
		"/Applications/Postgres.app/Contents/Versions/[0-9]*/bin", // Postgres.app
		"/opt/local/lib/postgresql*/bin",                          // MacPorts
		"/usr/pgsql-*/bin",                                        // PGDG rpm
	} {
		candidates = append(candidates, newestFirst(pattern)...)
	}

	candidates = append(candidates, configured(ctx)...)

	for _, dir := range candidates {
		if hasServer(dir) {
			return dir, nil
		}
	}

	return "", ErrNotInstalled
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}

	return true
}

// newestFirst lists the folders of a pattern by the version in their path, the highest first.
func newestFirst(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}

	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })

	return found
}

// version is the first number in the path; 0 without one.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}

	n, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}

	return n
}

// configured is the folder that pg_config names, where there is one.
func configured(ctx context.Context) []string {
	path, err := exec.LookPath("pg_config")
	if err != nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()

	out, err := process.Run(ctx, process.Spec{Path: path, Args: []string{"--bindir"}, Dir: os.TempDir()})
	if err != nil {
		return nil
	}

	return []string{strings.TrimSpace(out)}
}
