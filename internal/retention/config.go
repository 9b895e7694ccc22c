package retention

import (
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// Config says what is kept for how long.
type Config struct {
	Mode      domain.RetentionMode
	Width     Width         // of new ranges
	Retention time.Duration // above zero
	Instance  string        // who signs the reports

	// The rest has defaults: see [DefaultConfig].

	Every    time.Duration // between the beginnings of two turns
	Poll     time.Duration // between two questions whether this instance may, or still does
	Patience time.Duration // of one wait for a lock that batches stand behind
	Pause    time.Duration // between two batches of deletes, and two tries for a lock
	Batch    int           // rows of one delete
	Budget   time.Duration // of the ranges, of the deletes and of each chore in a turn
	MoveMax  int           // rows that are moved into a new range, at most
}

// DefaultConfig returns the bounds that nobody has to choose.
func DefaultConfig() Config {
	return Config{
		Mode: domain.RetainByPartition, Width: Day,
		Every: time.Minute, Poll: 3 * time.Second, Patience: 100 * time.Millisecond, Pause: 100 * time.Millisecond,
		Batch: 5000, Budget: 20 * time.Second, MoveMax: 50_000,
	}
}

// Tries for a lock in one turn.
const tries = 3

// dropRest is the longest pause between two turns that try to drop ranges in vain.
const dropRest = time.Hour

// Bounds of one question: to the brokers, which have to be asked one by one, and to the
// database.
const (
	readerTimeout = 45 * time.Second
	askTimeout    = 15 * time.Second
)

// counted is how far rows and intents are counted.
const counted = 100_000

// Validate returns all complaints joined, or nil.
func (c *Config) Validate() error {
	var errs []error
	if c.Mode != domain.RetainByPartition && c.Mode != domain.RetainByDelete {
		errs = append(errs, fmt.Errorf("retention: %q is no mode", string(c.Mode)))
	}
	if c.Mode == domain.RetainByDelete {
		errs = append(errs, c.Width.Validate(0)) // no ranges are attached
	} else {
		errs = append(errs, c.Width.Validate(c.Retention))
	}
	if c.Retention <= 0 || c.Every <= 0 || c.Poll <= 0 || c.Patience <= 0 || c.Pause <= 0 || c.Batch <= 0 || c.Budget <= 0 || c.MoveMax < 0 {
		errs = append(errs, errors.New("retention: a bound is not positive"))
	}
	return errors.Join(errs...)
}
