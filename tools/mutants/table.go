package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// progress is one line that is written over and over on a terminal, and a line per
// mutant anywhere else.
type progress struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	all      int
	done     int
	loose    int // not caught
}

func newProgress(out *os.File, all int) *progress {
	info, err := out.Stat()
	return &progress{out: out, all: all, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// step counts one mutant. What was not caught is told at once, on a line that stays.
func (p *progress) step(r *report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if r.verdict != verdictCaught {
		p.loose++
	}
	if !p.terminal {
		fmt.Fprintf(p.out, "%d of %d: %s: %s: %s\n", p.done, p.all, r.name, r.verdict, r.detail)
		return
	}
	if r.verdict != verdictCaught {
		fmt.Fprintf(p.out, "\r\x1b[K%s: %s: %s\n", r.name, r.verdict, r.detail)
	}
	fmt.Fprintf(p.out, "\r\x1b[K%d of %d mutants, %d not caught; the latest: %s", p.done, p.all, p.loose, r.name)
}

// end makes room for the table.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// table prints what became of every mutant, and reports whether all were caught.
func table(out io.Writer, reports []report, took time.Duration) bool {
	caught := 0
	for i := range reports {
		if r := &reports[i]; r.verdict == verdictCaught {
			caught++
		} else if len(r.output) > 0 {
			fmt.Fprintf(out, "--- %s: %s\n%s\n", r.name, r.verdict, strings.Join(r.output, ""))
		}
	}
	rows := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range reports {
		r := &reports[i]
		fmt.Fprintf(rows, "%s\t%s\t%.1f s\t%s\n", r.name, r.verdict, r.took.Seconds(), r.detail)
	}
	_ = rows.Flush()
	fmt.Fprintf(out, "%d of %d mutants caught in %s\n", caught, len(reports), took.Round(time.Second))
	return caught == len(reports)
}
