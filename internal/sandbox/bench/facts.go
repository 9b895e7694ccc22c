package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"example.com/billing/internal/sandbox/process"
)

const (
	// fsyncFor is how long the disk is tried.
	fsyncFor = time.Second
	// page is what is written each time: a block of the database.
	page = 8 << 10
)

// Facts are those of the machine.
type Facts struct {
	Date     string  `json:"date"`
	Version  string  `json:"version"` // of billing
	OS       string  `json:"os"`
	Kernel   string  `json:"kernel,omitempty"`
	CPU      string  `json:"cpu,omitempty"`
	Cores    int     `json:"cores"`
	MemoryGB float64 `json:"memory_gb,omitempty"`
	// Fsync is how often a second a page is appended and flushed, in the folder of the database.
	Fsync    float64 `json:"fsync_per_second"`
	Go       string  `json:"go"`
	Postgres string  `json:"postgresql"`
	Load     string  `json:"load_average,omitempty"` // at the start: 1, 5, 15 minutes
}

// facts looks at the machine.
func (w *World) facts(ctx context.Context) (f Facts, err error) {
	f = Facts{
		Date: time.Now().UTC().Format(time.DateOnly), OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		Kernel: read("/proc/sys/kernel/osrelease"), CPU: field("/proc/cpuinfo", "model name"),
	}
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		f.MemoryGB = kib / (1 << 20)
	}
	if loads := strings.Fields(read("/proc/loadavg")); len(loads) >= 3 {
		f.Load = strings.Join(loads[:3], " ")
	}
	if f.Version, err = process.Run(ctx, process.Spec{Path: w.options.Billing, Args: []string{"version"}}); err != nil {
		return f, err
	}
	f.Version, _, _ = strings.Cut(strings.TrimPrefix(f.Version, "billing "), " go")
	if f.Postgres, err = w.books.version(ctx); err != nil {
		return f, err
	}
	f.Fsync, err = fsyncRate(w.dir)
	return f, err
}

// read returns a small file's text, "" where there is none.
func read(path string) string {
	content, err := os.ReadFile(path) //nolint:gosec // fixed names
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// field is the value behind a name and a colon.
func field(path, name string) string {
	for line := range strings.Lines(read(path)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// fsyncRate tries the disk for a second.
func fsyncRate(dir string) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fsync")) //nolint:gosec // in our own folder
	if err != nil {
		return 0, fmt.Errorf("try the disk: %w", err)
	}
	defer f.Close()
	block := bytes.Repeat([]byte{1}, page)
	began, n := time.Now(), 0
	for ; time.Since(began) < fsyncFor; n++ {
		if _, err := f.Write(block); err != nil {
			return 0, fmt.Errorf("try the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("try the disk: %w", err)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
