package paymenttest

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Latency is how long the provider takes. The zero value takes no time. Kind
// names the distribution and which of the durations count:
//
//	fixed      Min
//	uniform    from Min to Max
//	lognormal  Median and P99, no more than Cut (0: ten times P99)
type Latency struct {
	Kind   string   `json:"kind,omitempty"`
	Min    Duration `json:"min,omitempty"`
	Max    Duration `json:"max,omitempty"`
	Median Duration `json:"median,omitempty"`
	P99    Duration `json:"p99,omitempty"`
	Cut    Duration `json:"cut,omitempty"`
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

func (l Latency) validate() error {
	var err error
	switch l.Kind {
	case "":
		if l != (Latency{}) {
			err = errors.New("durations without a kind")
		}
	case "fixed":
	case "uniform":
		if l.Max < l.Min {
			err = errors.New("max is below min")
		}
	case "lognormal":
		if l.Median <= 0 || l.P99 < l.Median {
			err = errors.New("want 0 < median ≤ p99")
		}
	default:
		err = fmt.Errorf("kind %q: want fixed, uniform or lognormal", l.Kind)
	}
	for _, d := range []Duration{l.Min, l.Max, l.Median, l.P99, l.Cut} {
		if d < 0 || time.Duration(d) > MaxHold {
			err = errors.Join(err, fmt.Errorf("%s: want 0 to %s", time.Duration(d), MaxHold))
		}
	}
	if err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return nil
}

func (l Latency) sample(dice *dice) time.Duration {
	switch l.Kind {
	case "fixed":
		return time.Duration(l.Min)
	case "uniform":
		return time.Duration(l.Min) + time.Duration(dice.Float64()*float64(l.Max-l.Min))
	case "lognormal":
		sigma := math.Log(float64(l.P99)/float64(l.Median)) / z99
		cut := float64(l.Cut)
		if cut == 0 {
			cut = math.Min(10*float64(l.P99), float64(MaxHold))
		}
		return time.Duration(math.Min(float64(l.Median)*math.Exp(sigma*dice.NormFloat64()), cut))
	}
	return 0
}
