package run

import (
	"fmt"
	"strings"
)

// rolls: instances joined and left as often as asked, with records in flight, and each time the
// group came to rest. It returns how many left, and what was not in order about it.
func (j *judge) rolls() (left int, disorder []string) {
	f := j.f
	if f.Setup.Joins == 0 {
		return 0, nil
	}
	var joined, loaded int
	var idle, restless []string
	for i := range f.Rolls {
		roll := &f.Rolls[i]
		if roll.Left > 0 {
			left++
			loaded += met(roll.LeftInFlight, &idle, "instance %d that left at %.1f s", roll.Left, roll.AtSeconds)
		}
		if roll.Joined > 0 {
			joined++
			loaded += met(roll.MovedInFlight, &idle, "instance %d that joined at %.1f s", roll.Joined, roll.AtSeconds)
		}
		if !roll.Settled {
			restless = append(restless, fmt.Sprintf("at %.1f s", roll.AtSeconds))
		}
		if roll.Disorder != "" {
			disorder = append(disorder, roll.Disorder)
		}
	}
	note := fmt.Sprintf("%d joined, %d left", joined, left)
	if len(f.Rolls) != f.Setup.Joins {
		note = fmt.Sprintf("of %d asked for: ", f.Setup.Joins) + note
	}
	if len(restless) > 0 {
		note += "; did not settle: " + strings.Join(restless, ", ")
	}
	j.line("joins and leaves", int64(joined+left), len(f.Rolls) == f.Setup.Joins && len(restless) == 0, "%s", note)
	note = "met records in flight"
	if len(idle) > 0 {
		note += "; not so: " + strings.Join(idle, ", ")
	}
	j.line("of these under load", int64(loaded), loaded > 0, "%s", note)
	j.backlog()
	return left, disorder
}

// backlog: where one was asked for, instances came and went while records waited in every partition.
func (j *judge) backlog() {
	if !j.f.Setup.Backlog {
		return
	}
	full, least := 0, int64(0)
	var spent []string
	for i := range j.f.Rolls {
		roll := &j.f.Rolls[i]
		if roll.Waiting <= 0 {
			spent = append(spent, fmt.Sprintf("at %.1f s", roll.AtSeconds))
			continue
		}
		if full++; full == 1 || roll.Waiting < least {
			least = roll.Waiting
		}
	}
	note := number(least) + " records at least waited in each partition"
	if len(spent) > 0 {
		note += "; not so: " + strings.Join(spent, ", ") + ": give more --records"
	}
	j.line("turns with a backlog", int64(full), len(spent) == 0, "%s", note)
}

// met is 1 where records were in flight; else who met none is noted.
func met(inFlight int, idle *[]string, format string, args ...any) int {
	if inFlight > 0 {
		return 1
	}
	*idle = append(*idle, fmt.Sprintf(format, args...))
	return 0
}
