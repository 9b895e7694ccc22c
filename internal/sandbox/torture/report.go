package torture

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"example.com/billing/internal/sandbox/run"
)

// Report is what became of one family.
type Report struct {
	Family string
	Seed   uint64
	Clean  bool
	Hits   []Hit
	Run    run.Report // what the books say
	Checks []run.Line // what is asked beyond that
}

// check adds a figure with its check.
func (r *Report) check(name string, value int, ok bool, format string, args ...any) {
	verdict := run.Failed
	if ok {
		verdict = run.OK
	}
	r.Checks = append(r.Checks, run.Line{Name: name, Value: strconv.Itoa(value), Verdict: verdict, Note: fmt.Sprintf(format, args...)})
}

// judge holds what is left behind against what was done.
func (w *world) judge(f *run.Facts, missing string) Report {
	r := Report{Family: w.family.name, Seed: w.family.seed, Run: run.Judge(f), Hits: w.record.hits}
	r.check("done", len(f.Topic.Events), missing == "", "%s", or(missing, "events, all of them finished"))
	r.Checks = append(r.Checks, run.Line{
		Name: "left without a last commit", Value: strconv.Itoa(w.record.uncommitted), Verdict: run.NotChecked,
		Note: "the brokers did not answer it in time: what it would have covered came again, as duplicates",
	})
	r.Checks = append(r.Checks, run.Line{
		Name: "embedded broker stuck", Value: strconv.Itoa(w.wedged), Verdict: run.NotChecked,
		Note: "times nothing moved any more, and it was started anew; Apache Kafka is left alone",
	})
	letters := map[string]int{}
	for _, l := range f.Book.Letters {
		if l.Reason != "order_conflict" && !strings.HasPrefix(l.Reason, "invalid_") {
			letters[l.Reason]++
		}
	}
	r.check("dead letters without a cause", len(letters), len(letters) == 0, "other than of bad records and of orders with two amounts: %v", letters)
	repeats := w.sentry.all()
	if w.family.ignoreKeys {
		r.judgeOnce(f)
	} else {
		r.judgeRepeats(repeats, w.record.windows)
	}
	r.Clean = r.Run.Clean
	for _, line := range r.Checks {
		r.Clean = r.Clean && line.Verdict != run.Failed
	}
	return r
}

// judgeOnce: a provider that ignores keys was asked exactly once for every charge.
func (r *Report) judgeOnce(f *run.Facts) {
	again, example := 0, uuid.Nil
	for id := range f.Charges {
		if f.Charges[id].Posts != 1 {
			again, example = again+1, id
		}
	}
	settled := 0
	for id := range f.Book.Charges {
		if s := f.Book.Charges[id].Status; s == "captured" || s == "declined" {
			settled++
		}
	}
	r.check("events with one POST", len(f.Charges)-again, again == 0 && settled == len(f.Charges),
		"%d captured or declined; %d with more than one POST%s", settled, again, exampleOf(example))
}

// judgeRepeats: a POST is repeated while an intent of its event is unresolved, and for
// a reason.
func (r *Report) judgeRepeats(repeats []Repeat, windows []*Window) {
	unowned, idle := 0, 0
	var example uuid.UUID
	for i := range repeats {
		p := &repeats[i]
		zombie := overlaps(windows, p.Before, p.At, func(w *Window) bool { return w.What == "stop" })
		if !p.Owned && !p.Unknown && !zombie {
			unowned, example = unowned+1, p.Key
		}
		if p.Told && !overlaps(windows, p.Before, p.At, func(*Window) bool { return true }) {
			idle, example = idle+1, p.Key
		}
	}
	r.check("repeated POSTs", len(repeats), unowned == 0 && idle == 0,
		"%d without an intent that was being called, %d after an answer that nothing took away%s", unowned, idle, exampleOf(example))
}

func exampleOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return ", " + id.String() + " say"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Write writes the tables of a family for people.
func (r *Report) Write(w io.Writer, width int) {
	fmt.Fprintf(w, "\nfamily %s, seed %d: faults made\n", r.Family, r.Seed)
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"fault", "point", "charges in flight", "none in flight", "not reached"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}})
	for _, c := range tallies(r.Hits) {
		t.AppendRow(table.Row{c.kind, c.point, c.inFlight, c.idle, c.missed})
	}
	fmt.Fprintln(w, t.Render())
	whole := r.Run
	whole.Lines = append(append([]run.Line(nil), r.Run.Lines...), r.Checks...)
	whole.Clean = r.Clean
	whole.WriteTable(w, width)
}

// InFlight counts the faults that hit charges in flight.
func InFlight(reports []Report) (n, all int) {
	for i := range reports {
		for _, h := range reports[i].Hits {
			if h.Missed {
				continue
			}
			all++
			if h.InFlight > 0 {
				n++
			}
		}
	}
	return n, all
}

// Verdict is the last line, and whether it is a good one.
func Verdict(seed uint64, reports []Report) (line string, clean bool) {
	clean = len(reports) > 0
	for i := range reports {
		clean = clean && reports[i].Clean
	}
	n, all := InFlight(reports)
	verdict := "CLEAN"
	if !clean {
		verdict = "NOT CLEAN"
	}
	return fmt.Sprintf("torture: %s: seed %d, %d faults, %d of them hit charges in flight", verdict, seed, all, n), clean
}
