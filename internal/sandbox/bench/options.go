package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Bounds of a bench.
const (
	minScale  = 0.001
	maxRounds = 15
	maxLanes  = 1000
	// smallest is the least number of records of a run, however small the scale.
	smallest = 200
)

// Options say what is measured.
type Options struct {
	// Billing and Sandbox are the paths of the two binaries.
	Billing, Sandbox string
	// Dir is where the data of broker and database lie while it runs; empty: the
	// system's folder for temporary files. It decides which disk is measured.
	Dir string
	// Scale multiplies the numbers of records, above 0 and up to 1.
	Scale float64
	// Only names the scenarios to run; none: those of the first set.
	Only []string
	// Growth runs the set of growth instead of the main one.
	Growth bool
	// Retention runs the set of retention instead: ranges, emptying them, and what shows it.
	Retention bool
	// Rounds is how often a short run is repeated; odd, so that there is a median.
	Rounds int
	// Partitions of the topic.
	Partitions int32
	// Environ is the environment of the sandbox, of which the children get the part
	// that is no setting of billing.
	Environ []string
	// Say tells how it goes.
	Say func(format string, args ...any)
}

// Validate returns all complaints, joined.
func (o *Options) Validate() error {
	var complaints []error
	complain := func(bad bool, format string, args ...any) {
		if bad {
			complaints = append(complaints, fmt.Errorf(format, args...))
		}
	}
	complain(!(o.Scale >= minScale && o.Scale <= 1), "--scale %v: want %v to 1", o.Scale, minScale)
	complain(o.Rounds < 1 || o.Rounds > maxRounds || o.Rounds%2 == 0, "--rounds %d: want an odd number, 1 to %d", o.Rounds, maxRounds)
	complain(o.Partitions < 1 || o.Partitions > maxLanes, "--partitions %d: want 1 to %d", o.Partitions, maxLanes)
	complain(o.Growth && len(o.Only) > 0, "--growth and --only exclude each other")
	complain(o.Retention && len(o.Only) > 0, "--retention and --only exclude each other")
	complain(o.Retention && o.Growth, "--retention and --growth exclude each other")
	for _, name := range o.Only {
		complain(!slices.Contains(Names(), name), "--only %s: want one of %s", name, strings.Join(Names(), ", "))
	}
	for _, binary := range []string{o.Billing, o.Sandbox} {
		if _, err := os.Stat(binary); err != nil {
			complain(true, "%w (`make build` makes it)", err)
		}
	}
	return errors.Join(complaints...)
}

// Section is the part of the document that the set belongs to.
func (o *Options) Section() string {
	switch {
	case o.Growth:
		return sectionGrowth
	case o.Retention:
		return sectionRetention
	}
	return sectionMain
}

// scaled is a number of records at the bench's scale, rounded so that a tenth of it is a whole number.
func (o *Options) scaled(records int) int {
	return max(smallest, int(float64(records)*o.Scale)) / 10 * 10
}
