package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	OK         Verdict = "ok"
	Failed     Verdict = "failed"
	NotChecked Verdict = "not checked" // it does not apply to this run; the note says why
)

// Line is a figure of the closing table with its check.
type Line struct {
	Name    string  `json:"name"`
	Value   string  `json:"value"`
	Verdict Verdict `json:"verdict"`
	Note    string  `json:"note"` // what the figure was held against
}

// Report is the judged outcome of a run.
type Report struct {
	Clean bool  `json:"clean"`
	Setup Setup `json:"setup"`

	Records    int64          `json:"records"`
	Unique     int64          `json:"unique"`
	Duplicates DuplicateFacts `json:"duplicates"`
	Processed  int64          `json:"processed"`

	Captured       int64 `json:"captured"`
	Declined       int64 `json:"declined"`
	DuplicateOrder int64 `json:"duplicate_order"`
	Discarded      int64 `json:"discarded"`
	Invalid        int64 `json:"invalid"`
	Parked         int64 `json:"parked"`
	Unfinished     int64 `json:"unfinished"`
	Lost           int64 `json:"lost"`
	Lag            int64 `json:"lag"`

	Posts               int64              `json:"posts"`
	RepeatedPosts       int64              `json:"repeated_posts"`
	UnexplainedPosts    int64              `json:"unexplained_posts"`
	DoubleChargedKeys   int64              `json:"double_charged_keys"`
	DoubleChargedOrders int64              `json:"double_charged_orders"`
	DoubleCharges       int64              `json:"double_charges"`
	CapturedTotal       map[string]Capture `json:"captured_total"`

	Kills   []Kill  `json:"kills"`
	Rolls   []Roll  `json:"joins"`
	Seconds float64 `json:"seconds"`
	Lines   []Line  `json:"checks"`
}

// DuplicateFacts are the duplicates as sent and as seen.
type DuplicateFacts struct {
	Sent            int64 `json:"sent"`
	SentSame        int64 `json:"sent_same_record"`
	SentRepublished int64 `json:"sent_republished"`
	SentConflicting int64 `json:"sent_conflicting"`
	Total           int64 `json:"total"`
	Redelivered     int64 `json:"redelivered"`
	Republished     int64 `json:"republished"`
	Conflicting     int64 `json:"conflicting"`

	Delays map[string]int64 `json:"delays"` // how late they came
}

// Capture is a captured total in major units, by each book.
type Capture struct {
	Charge string `json:"charge"` // the service's table
	Ledger string `json:"ledger"` // the provider's ledger
}

// Judge holds the facts against each other. The report is clean when no check failed.
func Judge(f *Facts) Report {
	j := judge{f: f, statuses: f.Book.Statuses(), quiet: len(f.Kills) == 0 && f.Setup.Instances == 1 && !f.Setup.Disturbed}
	j.arrivals()
	j.outcomes()
	j.counters()
	j.duplicates()
	j.recount()
	j.told()
	j.provider()
	j.money()
	j.audit()
	j.conduct()
	r := j.report
	r.Clean = true
	for _, line := range r.Lines {
		r.Clean = r.Clean && line.Verdict != Failed
	}
	r.Setup, r.Seconds = f.Setup, f.Duration.Round(time.Millisecond).Seconds()
	return r
}

// judge builds a report line by line.
type judge struct {
	f        *Facts
	statuses map[string]int64
	quiet    bool // nothing was disturbed: no record is delivered twice
	report   Report
}

// line adds a figure with its check.
func (j *judge) line(name string, value int64, ok bool, format string, args ...any) {
	j.text(name, number(value), ok, format, args...)
}

func (j *judge) text(name, value string, ok bool, format string, args ...any) {
	verdict := Failed
	if ok {
		verdict = OK
	}
	j.report.Lines = append(j.report.Lines, Line{name, value, verdict, fmt.Sprintf(format, args...)})
}

// skip adds a figure whose check does not apply, and why.
func (j *judge) skip(name string, value int64, why string) {
	j.report.Lines = append(j.report.Lines, Line{name, number(value), NotChecked, why})
}

// number writes an integer with separators, as people read it.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// fail adds a line that something outside the facts went wrong.
func (r *Report) fail(name, note string) {
	r.Clean = false
	r.Lines = append(r.Lines, Line{name, "", Failed, note})
}
