package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
)

// replayLine is what became of one letter, or would become of it, as the API tells it.
type replayLine struct {
	admin.Done
	// Source is where the event was first seen; looked up by a dry run only.
	Source *admin.Source `json:"source"`
}

// replayRefusal is a letter that stays as it is.
type replayRefusal struct {
	ID     int64  `json:"id"`
	DryRun bool   `json:"dry_run"`
	Result string `json:"result"` // refused or failed
	Detail string `json:"detail"`
}

func lineOf(b domain.Bulk, dry bool) replayLine {
	line := replayLine{Done: admin.ViewDone(b.LetterID, &b.Plan, dry)}
	if b.Plan.Processed != nil {
		line.Source = new(admin.ViewSource(b.Plan.Processed.Source))
	}
	return line
}

func refusalOf(b domain.Bulk, dry bool) replayRefusal {
	r := replayRefusal{ID: b.LetterID, DryRun: dry, Result: "failed", Detail: b.Err.Error()}
	if domain.Refused(b.Err) {
		r.Result = "refused"
	}
	return r
}

// replayReport tells of the letters: as JSON at once, or as a table at the end,
// with a bar on the way where somebody watches.
type replayReport struct {
	out   io.Writer
	flags replayFlags
	table table.Writer
	bar   *progressbar.ProgressBar
	total int
	bad   int // refused, failed, or not mended yet
	last  error
}

func newReplayReport(out, errs io.Writer, f replayFlags) *replayReport {
	r := &replayReport{out: out, flags: f, table: table.NewWriter()}
	r.table.SetStyle(table.StyleLight)
	r.table.AppendHeader(table.Row{"letter", "event", "reason", "processed", "intent", "charge", "provider", "result", "what follows"})
	if file, ok := errs.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		r.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(errs), progressbar.OptionSetDescription("dead letters"),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	}
	return r
}

// add tells of one letter. A dry run of a letter that would stay is no failure:
// saying so is what it is for.
func (r *replayReport) add(b domain.Bulk) {
	r.total++
	stays := b.Plan.Result == domain.ResultStillInvalid || b.Plan.Result == domain.ResultConflicting
	if b.Err != nil || stays && !r.flags.dryRun {
		r.bad++
	}
	if r.bar != nil {
		_ = r.bar.Add(1) // decoration
	}
	switch {
	case r.flags.json && b.Err != nil:
		r.encode(refusalOf(b, r.flags.dryRun))
	case r.flags.json:
		r.encode(lineOf(b, r.flags.dryRun))
	case b.Err != nil:
		refusal := refusalOf(b, r.flags.dryRun)
		r.table.AppendRow(table.Row{b.LetterID, "", "", "", "", "", "", refusal.Result, refusal.Detail})
	default:
		r.table.AppendRow(replayRow(b))
	}
}

func (r *replayReport) encode(line any) {
	if err := json.NewEncoder(r.out).Encode(line); err != nil {
		r.last = fmt.Errorf("write the report: %w", err)
	}
}

func replayRow(b domain.Bulk) table.Row {
	p := &b.Plan
	event, processed, sent, charge := "", "", "", ""
	if p.Letter.EventID != uuid.Nil {
		event = p.Letter.EventID.String()
	}
	if p.Processed != nil {
		processed = p.Processed.Source.String()
	}
	if p.Intent != nil {
		sent = string(p.Intent.State)
		if p.Intent.MaybeSent {
			sent += ", maybe sent"
		}
	}
	if p.Charge != nil {
		charge = string(p.Charge.Status)
	}
	return table.Row{b.LetterID, event, p.Letter.Reason, processed, sent, charge, p.Provider, p.Result, p.Forward}
}

// end shows the table, and returns an error when a letter stayed as it was.
func (r *replayReport) end() error {
	if r.bar != nil {
		_ = r.bar.Finish() // decoration
	}
	if !r.flags.json {
		if r.total > 0 {
			fmt.Fprintln(r.out, r.table.Render())
		}
		fmt.Fprintln(r.out, r.summary())
	}
	if r.bad > 0 && r.last == nil {
		r.last = fmt.Errorf("%d of %d dead letters stayed as they are", r.bad, r.total)
	}
	return r.last
}

func (r *replayReport) summary() string {
	verb := "replayed"
	if r.flags.discard {
		verb = "discarded"
	}
	switch {
	case r.total == 0:
		return "no open dead letter matches"
	case r.flags.dryRun:
		return fmt.Sprintf("dry run: nothing was changed; %d letters looked at", r.total)
	}
	return fmt.Sprintf("%d of %d letters %s", r.total-r.bad, r.total, verb)
}
