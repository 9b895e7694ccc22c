package domain

import "time"

// Clock tells the time. Tests hold it still.
type Clock interface {
	Now() time.Time
}

// SystemClock is the machine's clock. Its times carry the monotonic reading
// that lease deadlines are measured by.
type SystemClock struct{}

// Now returns the current time.
func (SystemClock) Now() time.Time { return time.Now() }
