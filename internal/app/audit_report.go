package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/audit"
	"example.com/billing/internal/domain"
)

// auditVersion is that of the JSON below: fields are added, never changed. Since version 2
// it goes by the names of the admin API.
const auditVersion = 2

// auditJSON is the report for programs.
type auditJSON struct {
	Version    int                     `json:"version"`
	Clean      bool                    `json:"clean"`
	Topic      string                  `json:"topic"`
	Group      string                  `json:"group"`
	Began      time.Time               `json:"began"`
	Seconds    float64                 `json:"seconds"`
	Partial    bool                    `json:"partial"`
	Partitions []auditPartitionJSON    `json:"partitions"`
	Records    int64                   `json:"records"`
	Kinds      map[audit.Kind]int64    `json:"kinds"`
	Total      int64                   `json:"findings_total"`
	Problems   map[audit.Problem]int64 `json:"problems"`
	Findings   []auditFindingJSON      `json:"findings"`
	Provider   auditProviderJSON       `json:"provider"`
	Warnings   []string                `json:"warnings"`
}

type auditPartitionJSON struct {
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Committed *int64 `json:"committed_offset"` // null where the group has none
	Records   int64  `json:"records"`
}

type auditFindingJSON struct {
	Problem audit.Problem `json:"problem"`
	Source  *admin.Source `json:"source"`
	EventID *uuid.UUID    `json:"event_id"`
	OrderID *int64        `json:"order_id"`
	What    string        `json:"what"`
	Advice  string        `json:"advice"`
}

type auditProviderJSON struct {
	Asked    bool  `json:"asked"`
	Lookups  int64 `json:"lookups"`
	Captured int64 `json:"captured"`
}

func writeAuditJSON(w io.Writer, r *audit.Report) error {
	view := auditJSON{
		Version: auditVersion, Clean: r.Clean(), Topic: r.Topic, Group: r.Group,
		Began: r.Began.UTC(), Seconds: r.Took.Seconds(), Partial: r.Partial,
		Partitions: []auditPartitionJSON{}, Records: r.Records, Kinds: r.Kinds,
		Total: r.Total, Problems: r.Problems, Findings: []auditFindingJSON{},
		Provider: auditProviderJSON(r.Provider), Warnings: append([]string{}, r.Warnings...),
	}
	for _, p := range r.Partitions {
		view.Partitions = append(view.Partitions, auditPartitionJSON{
			Partition: p.Partition, From: p.From, To: p.To, Committed: someOffset(p.Committed), Records: p.Records,
		})
	}
	for i := range r.Findings {
		view.Findings = append(view.Findings, findingView(&r.Findings[i]))
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func findingView(f *audit.Finding) auditFindingJSON {
	view := auditFindingJSON{Problem: f.Problem, What: f.What, Advice: f.Problem.Advice()}
	if f.At.Topic != "" {
		view.Source = new(admin.ViewSource(f.At))
	}
	if f.EventID != uuid.Nil {
		view.EventID = &f.EventID
	}
	if f.OrderID != 0 {
		view.OrderID = &f.OrderID
	}
	return view
}

// writeAuditTable is the report for people.
func writeAuditTable(w io.Writer, r *audit.Report) error {
	kinds := table.NewWriter()
	kinds.SetStyle(table.StyleLight)
	kinds.AppendHeader(table.Row{"terminal record", "offsets"})
	kinds.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight}})
	for _, k := range audit.Kinds() {
		kinds.AppendRow(table.Row{k, r.Kinds[k]})
	}
	kinds.AppendFooter(table.Row{"records", r.Records})
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s, group %s, as of %s\n", r.Topic, r.Group, r.Began.UTC().Format(time.RFC3339))
	for _, p := range r.Partitions {
		fmt.Fprintf(&b, "partition %d: offsets %d to %d, %d records, committed %s\n", p.Partition, p.From, p.To, p.Records, committedText(p.Committed))
	}
	fmt.Fprintf(&b, "%s\n%s\n", kinds.Render(), providerText(&r.Provider))
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for i := range r.Findings {
		b.WriteString(findingText(&r.Findings[i]))
	}
	if left := r.Total - int64(len(r.Findings)); left > 0 {
		fmt.Fprintf(&b, "… and %d findings more (--findings shows more of them)\n", left)
	}
	if r.Clean() {
		fmt.Fprintf(&b, "clean: %d records, each with one terminal record, in %.1f s\n", r.Records, r.Took.Seconds())
	} else {
		fmt.Fprintf(&b, "NOT CLEAN: %d findings in %d records\n", r.Total, r.Records)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func committedText(offset int64) string {
	if offset < 0 {
		return "nothing"
	}
	return strconv.FormatInt(offset, 10)
}

func providerText(p *audit.ProviderReport) string {
	if !p.Asked {
		return "provider: not asked"
	}
	return fmt.Sprintf("provider: %d lookups, %d of them captured", p.Lookups, p.Captured)
}

func findingText(f *audit.Finding) string {
	head := "✗ " + string(f.Problem)
	if f.At.Topic != "" {
		head += " at " + f.At.String()
	}
	if f.EventID != uuid.Nil {
		head += " event " + f.EventID.String()
	}
	if f.OrderID != 0 {
		head += fmt.Sprintf(" order %d", f.OrderID)
	}
	return head + ": " + f.What + "\n    → " + f.Problem.Advice() + "\n"
}

// outcomeJSON is one offset of a list.
type outcomeJSON struct {
	Source   admin.Source  `json:"source"`
	Kind     audit.Kind    `json:"kind"`
	EventID  *uuid.UUID    `json:"event_id"`
	OrderID  *int64        `json:"order_id"`
	Amount   *string       `json:"amount"`
	Currency *string       `json:"currency"`
	First    *admin.Source `json:"first"` // of a duplicate
}

func viewOutcome(o *audit.Outcome) outcomeJSON {
	view := outcomeJSON{Source: admin.ViewSource(o.At), Kind: o.Kind}
	if o.Event.ID != uuid.Nil {
		view.EventID, view.OrderID = &o.Event.ID, &o.Event.OrderID
		view.Amount, view.Currency = new(o.Event.Total.Decimal()), new(o.Event.Total.Currency().Code())
	}
	if o.First != (domain.Coordinates{}) {
		view.First = new(admin.ViewSource(o.First))
	}
	return view
}

func writeOutcome(w io.Writer, o *audit.Outcome, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(viewOutcome(o))
	}
	line := fmt.Sprintf("%s\t%s", o.At, o.Kind)
	if o.Event.ID != uuid.Nil {
		line += fmt.Sprintf("\tevent %s\torder %d\t%s", o.Event.ID, o.Event.OrderID, o.Event.Total)
	}
	if o.First != (domain.Coordinates{}) {
		line += "\tof " + o.First.String()
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// auditScreen shows on a terminal how far an audit is.
type auditScreen struct {
	out  io.Writer // nil where there is no terminal
	step string
	bar  *progressbar.ProgressBar
}

func newAuditScreen(out io.Writer) *auditScreen {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &auditScreen{out: out}
	}
	return &auditScreen{}
}

func (s *auditScreen) show(step string, done, most int64) {
	if s.out == nil {
		return
	}
	if s.bar == nil || step != s.step {
		s.done()
		s.step = step
		s.bar = progressbar.NewOptions64(most, progressbar.OptionSetWriter(s.out), progressbar.OptionSetDescription(step),
			progressbar.OptionSetWidth(20), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			// A bar without an end would else redraw itself from a goroutine that outlives it.
			progressbar.OptionSetSpinnerChangeInterval(0))
	}
	_ = s.bar.Set64(done)
}

// done takes the bar away.
func (s *auditScreen) done() {
	if s.bar != nil {
		_ = s.bar.Clear()
		_ = s.bar.Exit()
		s.bar = nil
	}
}
