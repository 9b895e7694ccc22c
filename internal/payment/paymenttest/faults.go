package paymenttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Faults is a fault plan. The zero value is a provider that never fails. The
// package comment describes what each action does.
type Faults struct {
	// Seed makes the dice repeatable.
	Seed uint64 `json:"seed,omitempty"`
	// IgnoreKeys makes every POST capture again.
	IgnoreKeys bool    `json:"ignoreKeys,omitempty"`
	Latency    Latency `json:"latency,omitzero"`
	Rules      []Rule  `json:"rules,omitempty"`
}

// Rule plays one action for some POSTs. Of Rate and Next one is given, or neither
// when there are Orders or Keys: then it is played for all of their POSTs.
type Rule struct {
	Action string `json:"action"`
	// Rate is the probability, above 0 and at most 1.
	Rate float64 `json:"rate,omitempty"`
	// Next plays it for so many POSTs, then never again.
	Next int64 `json:"next,omitempty"`
	// Orders and Keys restrict it to POSTs of any of them.
	Orders []int64  `json:"orders,omitempty"`
	Keys   []string `json:"keys,omitempty"`
	// RetryAfter is sent with 429 and 5xx, in seconds; 0: not sent.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Location is sent with 3xx.
	Location string `json:"location,omitempty"`
	// DeclineCode is sent with 402.
	DeclineCode string `json:"declineCode,omitempty"`
	// Hold bounds hang and hang-before; 0: until the client leaves, at most [MaxHold].
	Hold Duration `json:"hold,omitempty"`
}

// Duration is a time.Duration that is written as "1.5s" in JSON.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

type effect uint8

const (
	effectStatus effect = iota
	effectDecline
	effectReset
	effectCut
	effectHang
	effectHugeID
	effectNulID
	effectNotJSON
)

// rule is a Rule made ready.
type rule struct {
	Rule
	effect  effect
	status  int  // of effectStatus
	charges bool // the fault comes after the charge
	left    atomic.Int64
}

// plan is Faults made ready. It is shared by all requests and not changed, but for
// what is left of the rules with Next.
type plan struct {
	source  Faults
	seed    uint64
	latency Latency
	rules   []*rule
}

func compile(faults Faults) (*plan, error) {
	compiled := &plan{source: faults, seed: faults.Seed, latency: faults.Latency}
	var complaints []error
	complaints = append(complaints, faults.Latency.validate())
	var rates float64
	for i, source := range faults.Rules {
		ready, err := source.compile()
		if err != nil {
			complaints = append(complaints, fmt.Errorf("fault %d (%s): %w", i+1, source.Action, err))
			continue
		}
		if len(source.Orders)+len(source.Keys) == 0 {
			rates += source.Rate
		}
		compiled.rules = append(compiled.rules, ready)
	}
	if rates > 1+1e-9 {
		complaints = append(complaints, fmt.Errorf("rates add up to %g, more than 1", rates))
	}
	if err := errors.Join(complaints...); err != nil {
		return nil, err
	}
	return compiled, nil
}

func (r Rule) compile() (*rule, error) {
	ready := &rule{Rule: r}
	ready.left.Store(r.Next)
	if !ready.resolve() {
		return nil, fmt.Errorf("unknown action; want a status from 300 to 599 with or without -before or -after, or one of %s",
			strings.Join(namedActions(), ", "))
	}
	return ready, errors.Join(r.validateWhen(), ready.validateArgs())
}

// namedActions lists the actions that are not statuses.
func namedActions() []string {
	return []string{"reset-before", "reset-after", "cut", "hang", "hang-before", "huge-id", "nul-id", "not-json"}
}

// resolve fills in what the action's name says and reports whether it is known.
func (r *rule) resolve() bool {
	r.charges = true
	switch r.Action {
	case "reset-before":
		r.effect, r.charges = effectReset, false
	case "reset-after":
		r.effect = effectReset
	case "cut":
		r.effect = effectCut
	case "hang":
		r.effect = effectHang
	case "hang-before":
		r.effect, r.charges = effectHang, false
	case "huge-id":
		r.effect = effectHugeID
	case "nul-id":
		r.effect = effectNulID
	case "not-json":
		r.effect = effectNotJSON
	case "402":
		r.effect = effectDecline
	default:
		return r.resolveStatus()
	}
	return true
}

func (r *rule) resolveStatus() bool {
	text, when, split := strings.Cut(r.Action, "-")
	number, err := strconv.Atoi(text)
	if err != nil || number < 300 || number > 599 || number == 402 || (split && when != "before" && when != "after") {
		return false
	}
	r.effect, r.status, r.charges = effectStatus, number, when == "after"
	return true
}

func (r Rule) validateWhen() error {
	targeted := len(r.Orders)+len(r.Keys) > 0
	switch {
	case !(r.Rate >= 0 && r.Rate <= 1): // also NaN
		return fmt.Errorf("rate %g: want a probability above 0 and at most 1", r.Rate)
	case r.Next < 0:
		return fmt.Errorf("next %d: must not be negative", r.Next)
	case r.Rate > 0 && r.Next > 0:
		return errors.New("rate and next exclude each other")
	case r.Rate == 0 && r.Next == 0 && !targeted:
		return errors.New("never played: give a rate, next, orders or keys")
	}
	return nil
}

func (r *rule) validateArgs() error {
	var complaints []error
	refuse := func(given bool, what, where string) {
		if given {
			complaints = append(complaints, fmt.Errorf("%s: only for %s", what, where))
		}
	}
	class := r.status / 100
	refuse(r.RetryAfter != 0 && r.status != 429 && class != 5, "retry after", "429 and 5xx")
	refuse(r.Location != "" && class != 3, "location", "3xx")
	refuse(r.DeclineCode != "" && r.effect != effectDecline, "decline code", "402")
	refuse(r.Hold != 0 && r.effect != effectHang, "hold", "hang and hang-before")
	if r.RetryAfter < 0 {
		complaints = append(complaints, errors.New("retry after: must not be negative"))
	}
	if hold := time.Duration(r.Hold); hold < 0 || hold > MaxHold {
		complaints = append(complaints, fmt.Errorf("hold %s: want 0 to %s", hold, MaxHold))
	}
	if strings.ContainsAny(r.Location, "\r\n\x00") { // any other nonsense may be wanted
		complaints = append(complaints, errors.New("location: holds a character that a header cannot carry"))
	}
	return errors.Join(complaints...)
}

// draw returns the rule to play for a POST, or nil. Rules with Next come first,
// in their order; then one throw decides among the rates.
func (p *plan) draw(dice *dice, key string, orderID int64) *rule {
	if len(p.rules) == 0 {
		return nil
	}
	for _, r := range p.rules {
		if r.Rate == 0 && r.fits(key, orderID) && r.take() {
			return r
		}
	}
	throw := dice.Float64()
	for _, r := range p.rules {
		if r.Rate == 0 || !r.fits(key, orderID) {
			continue
		}
		if throw -= r.Rate; throw < 0 {
			return r
		}
	}
	return nil
}

func (r *rule) fits(key string, orderID int64) bool {
	return len(r.Orders)+len(r.Keys) == 0 || slices.Contains(r.Orders, orderID) || slices.Contains(r.Keys, key)
}

// take uses up one of Next. A rule without Next is never used up.
func (r *rule) take() bool {
	return r.Next == 0 || r.left.Add(-1) >= 0
}

func (r *rule) declineCode() string {
	if r.DeclineCode == "" {
		return "insufficient_funds"
	}
	return r.DeclineCode
}

// decodeFaults reads the JSON form strictly.
func decodeFaults(text []byte) (Faults, error) {
	var faults Faults
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&faults); err != nil {
		return Faults{}, fmt.Errorf("faults: %w", err)
	}
	return faults, nil
}
