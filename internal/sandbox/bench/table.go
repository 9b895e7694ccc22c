package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable writes the table for people.
func (r *Report) WriteTable(w io.Writer) {
	t := r.table()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Render()
	for _, note := range r.Notes {
		fmt.Fprintln(w, "·", note)
	}
	fmt.Fprintln(w, r.Summary())
}

func (r *Report) table() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"scenario", "figure", "ceiling", "sequential", "billing", "measured", "goal", ""})
	var columns []table.ColumnConfig
	for number := 3; number <= 7; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	before := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		name := row.Scenario
		if name == before {
			name = ""
		} else if before != "" {
			t.AppendSeparator()
		}
		before = row.Scenario
		t.AppendRow(table.Row{
			name, row.Figure, cell(row.Ceiling, row.Digits), cell(row.Sequential, row.Digits), cell(row.Billing, row.Digits),
			strings.TrimSpace(cell(row.Measured, 2) + " " + row.unit()), row.Goal, row.Verdict.mark(),
		})
	}
	return t
}

// unit is shown beside a measure only.
func (r *Row) unit() string {
	if r.Measured == nil {
		return ""
	}
	return r.Unit
}

func (v Verdict) mark() string {
	switch v {
	case Reached:
		return "✓"
	case Missed:
		return "✗"
	case NoGoal:
	}
	return ""
}

// Summary is the outcome in some sentences.
func (r *Report) Summary() string {
	reached, missed := 0, 0
	for i := range r.Rows {
		switch r.Rows[i].Verdict {
		case Reached:
			reached++
		case Missed:
			missed++
		case NoGoal:
		}
	}
	void := r.Void()
	sums := "every sum right"
	if len(void) > 0 {
		sums = fmt.Sprintf("%d of them VOID", len(void))
	}
	lines := []string{fmt.Sprintf("%d of %d goals reached, %d runs, %s, in %.0f s, at scale %g", reached, reached+missed, len(r.Runs), sums, r.Seconds, r.Scale)}
	for i := range void {
		lines = append(lines, fmt.Sprintf("void: %s, %s, round %d: %s", void[i].Scenario, void[i].Mode, void[i].Round, void[i].Void))
	}
	return strings.Join(lines, "\n")
}

func cell(value *float64, digits int) string {
	if value == nil {
		return ""
	}
	return thousands(*value, digits)
}

// thousands writes a number with commas.
func thousands(value float64, digits int) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(value, 'f', digits, 64), ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole
}
