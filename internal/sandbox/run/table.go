package run

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// WriteTable writes the closing table for people. Where it is wider than width columns (0: not bounded)
// it goes without what the figures were held against; that of a failed check follows below.
func (r *Report) WriteTable(w io.Writer, width int) {
	whole := r.table(false)
	first, _, _ := strings.Cut(whole, "\n")
	if width == 0 || text.StringWidth(first) <= width {
		fmt.Fprintln(w, whole)
	} else {
		fmt.Fprintf(w, "%s\nwhat the figures were held against: on a terminal of %d columns, or by --json\n", r.table(true), text.StringWidth(first))
		for _, line := range r.Lines {
			if line.Verdict == Failed {
				fmt.Fprintf(w, "%s %s: %s\n", mark(line.Verdict), line.Name, line.Note)
			}
		}
	}
	fmt.Fprintln(w, r.Summary())
}

func (r *Report) table(narrow bool) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"", "figure", "", "held against"})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight}, {Number: 4, Hidden: narrow},
	})
	for _, line := range r.Lines {
		t.AppendRow(table.Row{line.Name, line.Value, mark(line.Verdict), line.Note})
	}
	return t.Render()
}

// Summary is the outcome in one sentence.
func (r *Report) Summary() string {
	failed := 0
	for _, line := range r.Lines {
		if line.Verdict == Failed {
			failed++
		}
	}
	if r.Clean {
		return fmt.Sprintf("clean: %s records, %s orders, none lost, none charged twice, in %.1f s", number(r.Records), number(r.Unique), r.Seconds)
	}
	return fmt.Sprintf("NOT CLEAN: %d of %d checks failed", failed, len(r.Lines))
}

func mark(v Verdict) string {
	switch v {
	case OK:
		return "✓"
	case Failed:
		return "✗"
	case NotChecked:
		return "·"
	}
	return string(v)
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
