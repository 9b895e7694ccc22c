package apache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/apache"
)

// script writes a program that prints text as `java -version` would.
func script(t *testing.T, text string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "java")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+text+"' >&2\n"), 0o700))

	return path
}

func touch(t *testing.T, names ...string) string {
	t.Helper()

	dir := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}

	return dir
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()

	java17 := `openjdk version "17.0.15" 2025-04-15`
	tests := []struct {
		name  string
		java  string
		jars  []string
		want  error
		words string
	}{
		{"no java", "", nil, apache.ErrNoJava, "openjdk-17-jre-headless"},
		{"a java that is too old", `java version "1.8.0_392"`, nil, apache.ErrNoJava, "older than 17"},
		{"a java that only asks to be installed", `Unable to locate a Java Runtime.`, nil, apache.ErrNoJava, "unknown version"},
		{"no jars", java17, nil, apache.ErrNoJars, "make kafka-jars"},
		{"jars without the broker", java17, []string{"kafka-clients-4.4.0.jar"}, apache.ErrNoJars, "it installs Java and Maven where it can"},
		{"jars of two brokers", java17, []string{"kafka_2.13-4.3.1.jar", "kafka_2.13-4.4.0.jar"}, apache.ErrMixedJars, "remove it"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			java := filepath.Join(t.TempDir(), "absent")
			if tt.java != "" {
				java = script(t, tt.java)
			}

			dir := filepath.Join(t.TempDir(), "data")
			_, err := apache.Start(t.Context(), apache.Options{Java: java, Libs: touch(t, tt.jars...), Dir: dir})
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.words)
			require.NoDirExists(t, dir)
		})
	}
}
