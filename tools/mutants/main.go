// Command mutants breaks the guarantees of the service one at a time and expects
// its tests to notice; see the package's doc.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// settings are what the command is told.
type settings struct {
	root string // the repository
	only string // comma list of numbers or beginnings of names; empty: every mutant
	jobs int    // mutants that are tested at a time
}

func main() {
	var s settings
	flag.StringVar(&s.root, "root", "..", "the repository")
	flag.StringVar(&s.only, "only", "", "comma list of mutants by number or name; empty: all")
	flag.IntVar(&s.jobs, "jobs", 2, "mutants that are tested at a time")
	flag.Parse()
	if flag.NArg() > 0 || s.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	caught, err := run(ctx, s)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:gocritic // the signals end with the process
	case !caught:
		os.Exit(1)
	}
}

// run tests the mutants that are asked for and reports whether all were caught.
func run(ctx context.Context, s settings) (caught bool, err error) {
	began := time.Now() // how long it takes, for people
	lab, err := newLab(ctx, s.root)
	if err != nil {
		return false, err
	}
	defer lab.close()
	mutants, err := load(lab.tree, s.only) // the patches of the copy, which nobody edits meanwhile
	if err != nil {
		return false, err
	}
	if err := lab.baseline(ctx, mutants); err != nil {
		return false, err
	}
	reports := lab.tryAll(ctx, mutants, s.jobs, newProgress(os.Stderr, len(mutants)))
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("stopped: %w", err)
	}
	return table(os.Stdout, reports, time.Since(began)), nil
}
