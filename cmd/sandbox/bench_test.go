package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/bench"
)

func TestBenchRefusesWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"want one of 0ms, 50ms":     {"bench", "--only", "warp"},
		"--scale 3":                 {"bench", "--scale", "3"},
		"exclude each other":        {"bench", "--growth", "--only", "0ms"},
		"--retention and --growth":  {"bench", "--growth", "--retention"},
		"--timeout":                 {"bench", "--timeout", "0s"},
		"/nowhere/billing: no such": {"bench", "--billing", "/nowhere/billing"},
	} {
		_, stderr, code := output(t, args...)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, says)
	}
	stdout, _, code := output(t, "bench", "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "Examples:")
}

func TestTheCeilingChargesAtTheMeteredProvider(t *testing.T) {
	t.Parallel()
	cmd, url := part(t, "bench-provider")
	stdout, stderr, code := output(t, "bench-ceiling", "--url", url, "--requests", "30", "--width", "2")
	require.Equal(t, exitOK, code, stderr)
	var c bench.Ceiling
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	require.Equal(t, 30, c.Requests)
	require.Positive(t, c.Rate)
	response, err := http.Get(url + "/_meter")
	require.NoError(t, err)
	defer response.Body.Close()
	var m bench.Meter
	require.NoError(t, json.NewDecoder(response.Body).Decode(&m))
	require.Equal(t, int64(30), m.Posts)
	end(t, cmd)
}
