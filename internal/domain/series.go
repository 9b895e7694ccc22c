package domain

import (
	"fmt"
	"time"
)

// SeriesStep is how far apart the points of a time series are.
type SeriesStep string

// The steps.
const (
	StepMinute SeriesStep = "minute"
	StepHour   SeriesStep = "hour"
	StepDay    SeriesStep = "day"
)

// MaxSeriesPoints bounds a time series: a day by the minute, two months by the hour.
const MaxSeriesPoints = 1500

// ParseSeriesStep returns the step of a name.
func ParseSeriesStep(name string) (SeriesStep, error) {
	switch s := SeriesStep(name); s {
	case StepMinute, StepHour, StepDay:
		return s, nil
	}
	return "", fmt.Errorf("step %q: want %s, %s or %s", name, StepMinute, StepHour, StepDay)
}

// Width is the time between two points.
func (s SeriesStep) Width() time.Duration {
	switch s {
	case StepMinute:
		return time.Minute
	case StepHour:
		return time.Hour
	case StepDay:
	}
	return 24 * time.Hour
}

// SeriesStart returns where a series begins that is to reach back to since, zero for all
// that is known: at the beginning of a step in UTC, and not further back than its bound
// of points allows.
func SeriesStart(since, now time.Time, step SeriesStep) time.Time {
	first := now.UTC().Truncate(step.Width()).Add(-(MaxSeriesPoints - 1) * step.Width())
	if since = since.UTC().Truncate(step.Width()); since.After(first) {
		return since
	}
	return first
}

// SeriesPoint is what was counted within a step, over all partitions.
type SeriesPoint struct {
	At time.Time // where the step begins, in UTC
	Counters
}

// DedupSeries are the counters of a group over time.
type DedupSeries struct {
	Step SeriesStep
	// Since is where it begins: later than asked for, where that would be too many points.
	Since time.Time
	// Points are in order of time, at most [MaxSeriesPoints]; steps in which nothing was
	// counted have none.
	Points []SeriesPoint
}
