package admin

import (
	"slices"
	"strings"
	"time"
)

// Bounds of what is told of one component.
const (
	maxReasonBytes = 200 // of each reason
	maxReasons     = 5
)

// Status is how well a component is.
type Status string

// The statuses, from best to worst. Readiness is lost with StatusFail only.
const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warn"
	StatusFail Status = "fail"
)

func worse(a, b Status) Status {
	order := []Status{StatusOK, StatusWarn, StatusFail}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Verdict is what a check found. It is shown without a token: no secrets in it.
type Verdict struct {
	Status Status
	Reason string // why it is not ok; cut at 200 bytes, and each of More likewise
	// More are further reasons, told behind the first one: four of them at most.
	More []string
	// Since is when it became so. Where the check does not know, leave it zero: the
	// time of the first check that found this status is taken.
	Since time.Time
}

// Worst makes one verdict of what a check has found in several places: none of them hides
// another. The worst status wins, and what is worst is told first. Since is that of the
// first of these that knows it. None at all is well.
func Worst(found ...Verdict) Verdict {
	worst := Verdict{Status: StatusOK}
	var reasons []string
	for _, status := range []Status{StatusFail, StatusWarn} {
		for _, v := range found {
			if v.Status != status {
				continue
			}
			if len(reasons) == 0 {
				worst.Status = status
			}
			if worst.Status == status && worst.Since.IsZero() {
				worst.Since = v.Since
			}
			reasons = append(append(reasons, v.Reason), v.More...)
		}
	}
	if len(reasons) > 0 {
		worst.Reason, worst.More = reasons[0], reasons[1:]
	}
	return worst
}

// reason is all that a verdict tells, bounded.
func (v *Verdict) reason() string {
	told := make([]string, 0, maxReasons)
	for _, reason := range append([]string{v.Reason}, v.More...) {
		if reason != "" && len(told) < maxReasons {
			told = append(told, strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], ""))
		}
	}
	return strings.Join(told, "; ")
}
