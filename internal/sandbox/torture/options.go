package torture

import (
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/billing/internal/sandbox/run"
)

// Families of runs.
const (
	FamilyA    = "a"
	FamilyB    = "b"
	FamilyBoth = "both"
)

// Bounds of the options.
const (
	maxDuration = 24 * time.Hour
	maxRate     = 10_000
	// shareOfA is the part of the time that family a gets where both run.
	shareOfA = 0.25
)

// Options are what a torture is made of.
type Options struct {
	// Billing is the path of the billing binary, for its audit and its reset of offsets.
	Billing string
	// Victim is the path of the victim's binary.
	Victim string
	// Kafka is run.KafkaEmbedded or run.KafkaApache.
	Kafka string
	// Duration is for how long faults are made; start and end come on top.
	Duration time.Duration
	Seed     uint64
	Family   string
	// Rate is in records per second.
	Rate float64
	// Keep keeps the folder of logs and data.
	Keep bool
	// Environ is the environment that victims get, besides their settings.
	Environ []string
	// Say takes a line of progress.
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
	complain(o.Kafka != run.KafkaEmbedded && o.Kafka != run.KafkaApache, "--kafka %s: want %s or %s", o.Kafka, run.KafkaEmbedded, run.KafkaApache)
	complain(o.Duration <= 0 || o.Duration > maxDuration, "--minutes: want above 0 and at most %s", maxDuration)
	complain(o.Family != FamilyA && o.Family != FamilyB && o.Family != FamilyBoth, "--family %s: want a, b or both", o.Family)
	complain(!(o.Rate > 0 && o.Rate <= maxRate), "--rate %v: want above 0 and at most %d", o.Rate, maxRate)
	for name, path := range map[string]string{"--billing": o.Billing, "--victim": o.Victim} {
		if _, err := os.Stat(path); err != nil {
			complain(true, "%s: %w (`make torture` makes it)", name, err)
		}
	}
	return errors.Join(complaints...)
}

// family is what one kind of run is made of.
type family struct {
	name     string
	duration time.Duration
	seed     uint64
	// ignoreKeys: the provider charges again for every POST.
	ignoreKeys bool
	// env are settings of billing.
	env []string
	// load is the family's part of the rate.
	load float64
	// latency is the provider's, at most.
	latency time.Duration
	// session is KAFKA_SESSION_TIMEOUT, lease how long an intent belongs to its owner.
	session, lease time.Duration
}

// families are those that are asked for, with their share of the time.
func (o *Options) families() []family {
	a := family{
		name: FamilyA, duration: o.Duration, seed: o.Seed, ignoreKeys: true,
		session: 3 * time.Second, lease: 25 * time.Second,
		load: 0.5, latency: 10 * time.Millisecond, // now and then nothing is in flight: see killBetween
		// One batch at a time, and time enough for every answer: without keys a POST that has to be
		// repeated is a double charge, whoever is to blame.
		env: []string{"KAFKA_SESSION_TIMEOUT=3s", "PAYMENT_TIMEOUT=10s", "CHARGE_BUDGET=12s", "MAX_TRANSACTIONS=1", "BATCH_MAX=32"},
	}
	b := family{
		name: FamilyB, duration: o.Duration, seed: o.Seed + 1,
		session: 2 * time.Second, lease: 5500 * time.Millisecond, load: 1, latency: 80 * time.Millisecond,
		env: []string{"KAFKA_SESSION_TIMEOUT=2s", "PAYMENT_TIMEOUT=1s", "CHARGE_BUDGET=1500ms", "BATCH_MAX=64"},
	}
	switch o.Family {
	case FamilyA:
		return []family{a}
	case FamilyB:
		return []family{b}
	}
	a.duration = time.Duration(shareOfA * float64(o.Duration))
	b.duration = o.Duration - a.duration
	return []family{a, b}
}
