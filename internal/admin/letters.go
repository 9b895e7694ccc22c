package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// letterView is a dead letter without its bytes.
type letterView struct {
	ID        int64              `json:"id"`
	Reason    domain.Reason      `json:"reason"`
	Detail    string             `json:"detail"`
	State     domain.LetterState `json:"state"`
	EventID   *uuid.UUID         `json:"event_id"` // null for an invalid record
	OrderID   *int64             `json:"order_id"` // null likewise
	Group     string             `json:"group"`
	Source    sourceView         `json:"source"`
	Timestamp *time.Time         `json:"timestamp"` // the record's own
	ParkedAt  time.Time          `json:"parked_at"`
}

func viewLetter(l *domain.Letter) letterView {
	return letterView{
		ID: l.ID, Reason: l.Reason, Detail: l.Detail, State: l.State,
		EventID: optional(l.EventID), OrderID: optional(l.OrderID), Group: l.Group,
		Source: viewSource(l.Record.Coordinates), Timestamp: instant(l.Record.Timestamp), ParkedAt: l.At.UTC(),
	}
}

// fullLetterView is a dead letter with its bytes. They may be any: encoding/json
// writes them as base64, and nil, which differs from empty, as null.
type fullLetterView struct {
	letterView
	Key     []byte       `json:"key_base64"`
	Value   []byte       `json:"value_base64"`
	Headers []headerView `json:"headers"`
	Actions []actionView `json:"actions"` // what operators did to it, newest first, at most 100
}

type headerView struct {
	Key   []byte `json:"key_base64"`
	Value []byte `json:"value_base64"`
}

// letters lists dead letters, newest first.
func (s *Server) letters(r *http.Request) (any, error) {
	params, err := parseParams(r, paramReason, paramState, paramEventID, paramSince, paramUntil, paramCursor, paramLimit)
	if err != nil {
		return nil, err
	}
	filter, err := params.letterFilter()
	if err != nil {
		return nil, err
	}
	page, err := query(s, r, func(ctx context.Context) (domain.Page[domain.Letter], error) {
		return s.deps.Archive.Letters(ctx, filter)
	})
	if err != nil {
		return nil, err
	}
	return viewPage(page, viewLetter), nil
}

// letter shows one dead letter with its bytes as they came.
func (s *Server) letter(r *http.Request) (any, error) {
	if _, err := parseParams(r); err != nil {
		return nil, err
	}
	id, err := pathID(r)
	if err != nil {
		return nil, err
	}
	var actions []domain.Action
	letter, err := query(s, r, func(ctx context.Context) (*domain.Letter, error) {
		letter, found, err := s.deps.Archive.Letter(ctx, id)
		if err != nil || !found {
			return nil, err
		}
		actions, err = s.deps.Archive.Actions(ctx, []int64{id})
		return &letter, err
	})
	if err != nil {
		return nil, err
	}
	if letter == nil {
		return nil, notFound("there is no such dead letter")
	}
	view := fullLetterView{
		letterView: viewLetter(letter), Key: letter.Record.Key, Value: letter.Record.Value,
		Headers: make([]headerView, len(letter.Record.Headers)), Actions: viewActions(actions),
	}
	for i, header := range letter.Record.Headers {
		view.Headers[i] = headerView{Key: []byte(header.Key), Value: header.Value}
	}
	return view, nil
}
