package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// headerOperator says who acts, where several people share the operator's token.
const headerOperator = "X-Operator"

// actionBound is the longest that a request may act: below the server's write
// bound, and enough for the largest bulk at the default rate.
const actionBound = 25 * time.Second

// Operator acts on dead letters. [domain.Operator] is one.
type Operator interface {
	Replay(ctx context.Context, id int64, by, why string) (domain.Done, error)
	Discard(ctx context.Context, i domain.Instruction) (domain.Done, error)
	Plan(ctx context.Context, i domain.Instruction) (domain.Plan, error)
	ReplayAll(ctx context.Context, f domain.LetterFilter, by, why string, dry bool, pace domain.Pacer, tell func(domain.Bulk)) error
}

// actionView is one line of the audit trail.
type actionView struct {
	LetterID int64             `json:"letter_id"`
	Action   domain.ActionKind `json:"action"`
	By       string            `json:"by"`
	Reason   string            `json:"reason"`
	Outcome  *domain.Outcome   `json:"outcome"`
	Result   domain.Result     `json:"result"`
	At       time.Time         `json:"at"`
}

func viewActions(actions []domain.Action) []actionView {
	views := make([]actionView, len(actions))
	for i, a := range actions {
		views[i] = actionView{
			LetterID: a.LetterID, Action: a.Kind, By: a.By, Reason: a.Why,
			Outcome: optional(a.Outcome), Result: a.Result, At: a.At.UTC(),
		}
	}
	return views
}

// doneView is what became of a letter, or would become of it.
type doneView struct {
	ID      int64              `json:"id"`
	EventID *uuid.UUID         `json:"event_id"`
	DryRun  bool               `json:"dry_run"`
	Result  domain.Result      `json:"result"`
	State   domain.LetterState `json:"state"`
	Reason  domain.Reason      `json:"reason"`
	Forward string             `json:"forward"`
	Before  beforeView         `json:"before"`
}

// beforeView is what stood for and against the action.
type beforeView struct {
	Processed bool                 `json:"processed"` // looked up by a dry run only
	Intent    *domain.IntentState  `json:"intent"`
	MaybeSent bool                 `json:"maybe_sent"`
	Charge    *domain.ChargeStatus `json:"charge"`
	Provider  string               `json:"provider"`
}

func viewDone(id int64, p *domain.Plan, dry bool) doneView {
	view := doneView{
		ID: id, EventID: optional(p.Letter.EventID), DryRun: dry, Result: p.Result,
		State: p.Letter.State, Reason: p.Letter.Reason, Forward: p.Forward,
		Before: beforeView{Processed: p.Processed != nil, Provider: p.Provider.String()},
	}
	if p.Intent != nil {
		view.Before.Intent, view.Before.MaybeSent = &p.Intent.State, p.Intent.MaybeSent
	}
	if p.Charge != nil {
		view.Before.Charge = &p.Charge.Status
	}
	return view
}

// actionBody is the body of every action. Only a discard must have one.
type actionBody struct {
	Reason           string         `json:"reason"`
	Outcome          domain.Outcome `json:"outcome"`
	ProviderChargeID string         `json:"providerChargeId"`
}

// replay sends a dead letter round again.
func (s *Server) replay(r *http.Request) (any, error) { return s.act(r, domain.ActionReplay) }

// discard gives the event of a dead letter up.
func (s *Server) discard(r *http.Request) (any, error) { return s.act(r, domain.ActionDiscard) }

func (s *Server) act(r *http.Request, kind domain.ActionKind) (any, error) {
	params, err := parseParams(r, paramDryRun)
	if err != nil {
		return nil, err
	}
	dry, err := params.flag(paramDryRun)
	if err != nil {
		return nil, err
	}
	i := domain.Instruction{Kind: kind}
	if i.LetterID, err = pathID(r); err != nil {
		return nil, err
	}
	if err = s.instruct(r, &i); err != nil {
		return nil, err
	}
	var plan domain.Plan
	err = s.operate(r, func(ctx context.Context) (err error) {
		if err = s.pace.Wait(ctx); err != nil {
			return err
		}
		switch {
		case dry:
			plan, err = s.deps.Operator.Plan(ctx, i)
		case kind == domain.ActionReplay:
			plan.Done, err = s.deps.Operator.Replay(ctx, i.LetterID, i.By, i.Why)
		default:
			plan.Done, err = s.deps.Operator.Discard(ctx, i)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return viewDone(i.LetterID, &plan, dry), nil
}

// bulkView is the end of a bulk replay.
type bulkView struct {
	DryRun   bool          `json:"dry_run"`
	Replayed int           `json:"replayed"`
	Refused  int           `json:"refused"`
	Stopped  *string       `json:"stopped"` // why it ended before the last letter; null when it did not
	Items    []doneView    `json:"items"`
	Refusals []refusalView `json:"refusals"`
}

// refusalView is a letter that was left as it is.
type refusalView struct {
	ID     int64  `json:"id"`
	Detail string `json:"detail"`
}

// replayAll replays the open letters of a filter.
func (s *Server) replayAll(r *http.Request) (any, error) {
	params, err := parseParams(r, paramReason, paramState, paramEventID, paramSince, paramUntil, paramLimit, paramDryRun)
	if err != nil {
		return nil, err
	}
	filter, err := params.letterFilter()
	if err != nil {
		return nil, err
	}
	if filter.State != "" && filter.State != domain.LetterOpen {
		return nil, badParameter(paramState, "only open letters can be replayed")
	}
	dry, err := params.flag(paramDryRun)
	if err != nil {
		return nil, err
	}
	var i domain.Instruction
	if err := s.instruct(r, &i); err != nil {
		return nil, err
	}
	view := bulkView{DryRun: dry, Items: []doneView{}, Refusals: []refusalView{}}
	err = s.operate(r, func(ctx context.Context) error {
		err := s.deps.Operator.ReplayAll(ctx, filter, i.By, i.Why, dry, s.pace, func(b domain.Bulk) {
			if b.Err != nil {
				s.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "dead letter not replayed", slog.Int64("letter", b.LetterID), slog.Any("error", b.Err))
				view.Refusals = append(view.Refusals, refusalView{ID: b.LetterID, Detail: shownDetail(b.Err)})
				return
			}
			view.Items = append(view.Items, viewDone(b.LetterID, &b.Plan, dry))
		})
		if err != nil && len(view.Items)+len(view.Refusals) > 0 { // what was done is to be told
			s.deps.Logger.LogAttrs(ctx, slog.LevelError, "bulk replay stopped", slog.Any("error", err))
			why := "it ran out of time or the database failed; the log has the reason"
			view.Stopped, err = &why, nil
		}
		return err
	})
	view.Replayed, view.Refused = len(view.Items), len(view.Refusals)
	if err != nil {
		return nil, err
	}
	return view, nil
}

// shownDetail is what a client may read of an error.
func shownDetail(err error) string {
	if domain.Refused(err) {
		return err.Error()
	}
	return "an error of our own or of the database; the log has it"
}

// instruct reads who acts and why.
func (s *Server) instruct(r *http.Request, i *domain.Instruction) error {
	i.By = r.Header.Get(headerOperator)
	if i.By == "" {
		i.By = "operator token"
		if s.cfg.Insecure {
			i.By = "anybody" // nobody is asked for a token
		}
	}
	var body actionBody
	if err := readBody(r, &body); err != nil {
		return err
	}
	i.Why, i.Outcome, i.ProviderChargeID = body.Reason, body.Outcome, body.ProviderChargeID
	if i.Kind != domain.ActionDiscard && (i.Outcome != "" || i.ProviderChargeID != "") {
		return newProblem(http.StatusUnprocessableEntity, "outcome and providerChargeId belong to a discard")
	}
	return nil
}

// readBody reads a JSON object, or nothing.
func readBody(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return newProblem(http.StatusRequestEntityTooLarge, "the body is too large")
	case err != nil:
		return newProblem(http.StatusBadRequest, "the body could not be read")
	case len(raw) == 0:
		return nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != typeJSON {
		return newProblem(http.StatusUnsupportedMediaType, "the body must be "+typeJSON)
	}
	if err := strictJSON(raw, into); err != nil {
		return newProblem(http.StatusBadRequest, "the body is not the JSON object that this route takes: "+err.Error())
	}
	return nil
}

func strictJSON(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// operate acts when it is the request's turn: one acts at a time, since each may
// take a connection that charges need.
func (s *Server) operate(r *http.Request, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(r.Context(), actionBound)
	defer cancel()
	select {
	case s.acting <- struct{}{}:
		defer func() { <-s.acting }()
	case <-ctx.Done():
		return newProblem(http.StatusServiceUnavailable, "another action is under way; try again")
	}
	err := act(ctx)
	var conflict *domain.ConflictError
	var input *domain.InputError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, domain.ErrNoLetter):
		return notFound("there is no such dead letter")
	case errors.As(err, &conflict):
		return newProblem(http.StatusConflict, conflict.Detail)
	case errors.As(err, &input):
		p := newProblem(http.StatusUnprocessableEntity, input.Error())
		p.Parameter = input.Field
		return p
	}
	s.deps.Logger.LogAttrs(ctx, slog.LevelError, "the admin API cannot act on a dead letter",
		slog.String("route", routeOf(r)), slog.Any("error", err))
	return newProblem(http.StatusServiceUnavailable, "the database does not answer, or is busy; the log has the reason")
}
