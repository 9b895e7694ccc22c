package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// loggedView is a line of the log of duplicates.
type loggedView struct {
	ID          int64                `json:"id"`
	EventID     uuid.UUID            `json:"event_id"`
	Kind        domain.DuplicateKind `json:"kind"`
	SeenAt      time.Time            `json:"seen_at"`
	Source      sourceView           `json:"source"` // the record that repeats
	First       *sourceView          `json:"first"`  // the record that it repeats; null where nobody knows
	FirstSeenAt *time.Time           `json:"first_seen_at"`
}

func viewLogged(d *domain.Duplicate) loggedView {
	view := loggedView{
		ID: d.ID, EventID: d.EventID, Kind: d.Kind, SeenAt: d.SeenAt.UTC(), Source: viewSource(d.Record),
		FirstSeenAt: instant(d.FirstSeenAt),
	}
	if d.First.Topic != "" {
		first := viewSource(d.First)
		view.First = &first
	}
	return view
}

// duplicates lists the log of duplicates, newest first.
func (s *Server) duplicates(r *http.Request) (any, error) {
	params, err := parseParams(r, paramEventID, paramKind, paramCursor, paramLimit)
	if err != nil {
		return nil, err
	}
	filter := domain.DuplicateFilter{Group: s.deps.Group}
	if filter.EventID, err = params.eventID(); err != nil {
		return nil, err
	}
	if filter.Kind, err = oneOf(params, paramKind, domain.DuplicateKinds()); err != nil {
		return nil, err
	}
	if filter.Cursor, filter.Limit, err = params.page(); err != nil {
		return nil, err
	}
	page, err := query(s, r, func(ctx context.Context) (domain.Page[domain.Duplicate], error) {
		return s.deps.Archive.Duplicates(ctx, filter)
	})
	if err != nil {
		return nil, err
	}
	return viewPage(page, viewLogged), nil
}
