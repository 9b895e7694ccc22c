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

	"example.com/billing/internal/domain"
)

// replayLine is what became of one letter, or would become of it.
type replayLine struct {
	ID        int64      `json:"id"`
	EventID   *uuid.UUID `json:"event_id"`
	Reason    string     `json:"reason"`
	DryRun    bool       `json:"dry_run"`
	Result    string     `json:"result"` // a domain.Result, or refused, or failed
	State     string     `json:"state"`
	Forward   string     `json:"forward"`
	Processed string     `json:"processed"` // where the event was first seen; looked up by a dry run only
	Intent    string     `json:"intent"`
	MaybeSent bool       `json:"maybe_sent"`
	Charge    string     `json:"charge"`
	Provider  string     `json:"provider"`
}

func lineOf(b domain.Bulk, dry bool) replayLine {
	line := replayLine{ID: b.LetterID, DryRun: dry}
	if b.Err != nil {
		line.Result, line.Forward = "failed", b.Err.Error()
		if domain.Refused(b.Err) {
			line.Result = "refused"
		}
		return line
	}
	p := &b.Plan
	line.Result, line.Forward = string(p.Result), p.Forward
	line.Reason, line.State, line.Provider = string(p.Letter.Reason), string(p.Letter.State), p.Provider.String()
	if p.Letter.EventID != uuid.Nil {
		line.EventID = &p.Letter.EventID
	}
	if p.Processed != nil {
		line.Processed = p.Processed.Source.String()
	}
	if p.Intent != nil {
		line.Intent, line.MaybeSent = string(p.Intent.State), p.Intent.MaybeSent
	}
	if p.Charge != nil {
		line.Charge = string(p.Charge.Status)
	}
	return line
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
	line := lineOf(b, r.flags.dryRun)
	r.total++
	stays := b.Plan.Result == domain.ResultStillInvalid || b.Plan.Result == domain.ResultConflicting
	if b.Err != nil || stays && !r.flags.dryRun {
		r.bad++
	}
	if r.bar != nil {
		_ = r.bar.Add(1) // decoration
	}
	if r.flags.json {
		if err := json.NewEncoder(r.out).Encode(line); err != nil {
			r.last = fmt.Errorf("write the report: %w", err)
		}
		return
	}
	event, sent := "", line.Intent
	if line.EventID != nil {
		event = line.EventID.String()
	}
	if line.MaybeSent {
		sent += ", maybe sent"
	}
	r.table.AppendRow(table.Row{line.ID, event, line.Reason, line.Processed, sent, line.Charge, line.Provider, line.Result, line.Forward})
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
