package retention

import (
	"fmt"
	"time"
)

// Width is how much time a range holds. Ranges begin at midnight UTC, weeks on Monday,
// months on the first.
type Width string

// The widths.
const (
	Day   Width = "day"
	Week  Width = "week"
	Month Width = "month"
)

// Widths returns all of them.
func Widths() []string { return []string{string(Day), string(Week), string(Month)} }

// MaxRanges bounds how many ranges the retention may take.
const MaxRanges = 1000

// Validate reports a width that there is not, and a retention that takes too many ranges.
func (w Width) Validate(retention time.Duration) error {
	if w.ahead() == 0 {
		return fmt.Errorf("%q is none of %v", string(w), Widths())
	}
	if n := int64(retention / w.About()); n > MaxRanges {
		return fmt.Errorf("a retention of %s takes %d ranges of a %s each; at most %d: take wider ones", retention, n, w, MaxRanges)
	}
	return nil
}

// About returns the least time that a range of this width holds.
func (w Width) About() time.Duration {
	const day = 24 * time.Hour
	switch w {
	case Week:
		return 7 * day
	case Month:
		return 28 * day
	case Day:
	}
	return day
}

// ahead is how many ranges are attached behind today's; 0 for what is no width.
func (w Width) ahead() int {
	switch w {
	case Day:
		return 7
	case Week:
		return 4
	case Month:
		return 3
	}
	return 0
}

// floor returns the beginning of the range that an instant lies in.
func (w Width) floor(at time.Time) time.Time {
	year, month, day := at.UTC().Date()
	switch w {
	case Week:
		sinceMonday := (int(at.UTC().Weekday()) + 6) % 7
		day -= sinceMonday
	case Month:
		day = 1
	case Day:
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// next returns the beginning of the range behind one that begins at from.
func (w Width) next(from time.Time) time.Time {
	switch w {
	case Week:
		return from.AddDate(0, 0, 7)
	case Month:
		return from.AddDate(0, 1, 0)
	case Day:
	}
	return from.AddDate(0, 0, 1)
}
