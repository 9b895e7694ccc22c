package paymenttest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseFaults reads the text form that the package comment describes and checks
// the plan. The error joins every complaint, each with the item it is about.
func ParseFaults(text string) (Faults, error) {
	var faults Faults
	var complaints []error
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if err := faults.add(item); err != nil {
			complaints = append(complaints, fmt.Errorf("fault %q: %w", item, err))
		}
	}
	if _, err := compile(faults); err != nil {
		complaints = append(complaints, err)
	}
	return faults, errors.Join(complaints...)
}

func (f *Faults) add(item string) error {
	name, value, given := strings.Cut(item, "=")
	if name == "ignore-keys" {
		f.IgnoreKeys = true
		if given && value != "true" {
			return errors.New("takes no value")
		}
		return nil
	}
	if !given {
		return errors.New("want ACTION=PROBABILITY, ACTION=nextN, latency=…, seed=… or ignore-keys")
	}
	var err error
	switch name {
	case "seed":
		if f.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return errors.New("want a whole number")
		}
	case "latency":
		f.Latency, err = parseLatency(value)
	default:
		var rule Rule
		if rule, err = parseRule(name, value); err == nil {
			f.Rules = append(f.Rules, rule)
		}
	}
	return err
}

func parseLatency(text string) (Latency, error) {
	kind, rest, _ := strings.Cut(text, ":")
	if _, err := time.ParseDuration(kind); err == nil {
		kind, rest = "fixed", text
	}
	latency := Latency{Kind: kind}
	var into []*Duration
	least := 2
	switch kind {
	case "fixed":
		into, least = []*Duration{&latency.Min}, 1
	case "uniform":
		into = []*Duration{&latency.Min, &latency.Max}
	case "lognormal":
		into = []*Duration{&latency.Median, &latency.P99, &latency.Cut}
	default:
		return Latency{}, errors.New("want a duration, fixed:D, uniform:MIN:MAX or lognormal:MEDIAN:P99[:CUT]")
	}
	parts := strings.Split(rest, ":")
	if len(parts) < least || len(parts) > len(into) {
		return Latency{}, fmt.Errorf("%s with %d durations, want %d to %d", kind, len(parts), least, len(into))
	}
	for i, part := range parts {
		if err := into[i].UnmarshalText([]byte(part)); err != nil {
			return Latency{}, fmt.Errorf("%q is no duration such as 50ms or 2s", part)
		}
	}
	return latency, nil
}

func parseRule(action, text string) (Rule, error) {
	rule := Rule{Action: action}
	text, target, targeted := strings.Cut(text, "@")
	when, arg, argued := strings.Cut(text, ":")
	err := rule.parseWhen(when)
	if targeted {
		err = errors.Join(err, rule.parseTarget(target))
	}
	if argued {
		err = errors.Join(err, rule.parseArg(arg))
	}
	return rule, err
}

func (r *Rule) parseWhen(text string) error {
	if count, ok := strings.CutPrefix(text, "next"); ok {
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("%q: want next and a number above 0, such as next3", text)
		}
		r.Next = n
		return nil
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate > 0 && rate <= 1) {
		return fmt.Errorf("%q: want a probability above 0 and at most 1, or nextN", text)
	}
	r.Rate = rate
	return nil
}

func (r *Rule) parseTarget(text string) error {
	kind, list, _ := strings.Cut(text, ":")
	for part := range strings.SplitSeq(list, "+") {
		switch kind {
		case "order":
			id, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no order id", part)
			}
			r.Orders = append(r.Orders, id)
		case "key":
			r.Keys = append(r.Keys, part)
		default:
			return fmt.Errorf("target %q: want order:ID+ID or key:UUID+UUID", text)
		}
	}
	return nil
}

// parseArg reads the argument by what the action makes of it.
func (r *Rule) parseArg(text string) error {
	switch {
	case r.Action == "402":
		r.DeclineCode = text
	case r.Action == "hang" || r.Action == "hang-before":
		if err := r.Hold.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%q is no duration such as 3s", text)
		}
	case strings.HasPrefix(r.Action, "3"):
		r.Location = text
	case strings.HasPrefix(r.Action, "429") || strings.HasPrefix(r.Action, "5"):
		seconds, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
		if err != nil {
			return fmt.Errorf("%q: want Retry-After in whole seconds", text)
		}
		r.RetryAfter = seconds
	default:
		return fmt.Errorf("%s takes no argument", r.Action)
	}
	return nil
}
