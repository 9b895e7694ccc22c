package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// eventView is what is known of one event.
type eventView struct {
	EventID uuid.UUID `json:"event_id"`
	// Processed says whether the event is in processed_event now: retention takes
	// it out again, and its charge stays.
	Processed   bool         `json:"processed"`
	ProcessedAt *time.Time   `json:"processed_at"`
	Source      *sourceView  `json:"source"` // the record that it was first seen in
	Charge      *chargeView  `json:"charge"`
	Intent      *intentView  `json:"intent"`
	DeadLetters []letterView `json:"dead_letters"` // newest first, at most 20
	Actions     []actionView `json:"actions"`      // what operators did to them, newest first, at most 100
	Duplicates  []loggedView `json:"duplicates"`   // the latest in the log, newest first, at most 100
	Log         logView      `json:"duplicate_log"`
	Timeline    []momentView `json:"timeline"` // all of it, in the order of time
}

// intentView is an unfinished charge.
type intentView struct {
	State          domain.IntentState `json:"state"`
	OrderID        int64              `json:"order_id"`
	Claimed        bool               `json:"claimed"`
	MaybeSent      bool               `json:"maybe_sent"`
	Attempts       int                `json:"attempts"`
	CreatedAt      time.Time          `json:"created_at"`
	DueAt          time.Time          `json:"due_at"`
	FirstAttemptAt *time.Time         `json:"first_attempt_at"`
	LastError      *string            `json:"last_error"`
	Lease          *leaseView         `json:"lease"`
	Source         sourceView         `json:"source"` // the record that is charged
}

type leaseView struct {
	Owner string    `json:"owner"`
	Until time.Time `json:"until"`
}

func viewIntent(in *domain.Intent) intentView {
	view := intentView{
		State: in.State, OrderID: in.OrderID, Claimed: in.Claimed, MaybeSent: in.MaybeSent, Attempts: in.Attempts,
		CreatedAt: in.CreatedAt.UTC(), DueAt: in.DueAt.UTC(), FirstAttemptAt: instant(in.FirstAttemptAt),
		LastError: optional(in.LastError), Source: viewSource(in.Record.Coordinates),
	}
	if in.State == domain.Calling {
		view.Lease = &leaseView{Owner: in.Owner, Until: in.LeaseUntil.UTC()}
	}
	return view
}

// event tells the story of one event.
func (s *Server) event(r *http.Request) (any, error) {
	if _, err := parseParams(r); err != nil {
		return nil, err
	}
	id, err := parseEventID(chi.URLParam(r, paramEventID))
	if err != nil {
		return nil, err
	}
	story, err := query(s, r, func(ctx context.Context) (*domain.EventStory, error) {
		story, found, err := s.deps.Archive.Event(ctx, s.deps.Group, id)
		if err != nil || !found {
			return nil, err
		}
		return &story, nil
	})
	if err != nil {
		return nil, err
	}
	if story == nil {
		return nil, notFound("this event was never seen")
	}
	return viewStory(story), nil
}

func viewStory(story *domain.EventStory) eventView {
	view := eventView{
		EventID: story.EventID, DeadLetters: make([]letterView, len(story.Letters)), Actions: viewActions(story.Actions),
		Duplicates: make([]loggedView, len(story.Duplicates)), Log: viewLog(story), Timeline: viewTimeline(story.Timeline()),
	}
	for i := range story.Duplicates {
		view.Duplicates[i] = viewLogged(&story.Duplicates[i])
	}
	if story.Sighting != nil {
		source := viewSource(story.Sighting.Source)
		view.Processed, view.Source = true, &source
	}
	if story.ProcessedAt != nil {
		view.ProcessedAt = instant(*story.ProcessedAt)
	}
	if story.Charge != nil {
		charge := viewCharge(story.Charge)
		view.Charge = &charge
	}
	if story.Intent != nil {
		intent := viewIntent(story.Intent)
		view.Intent = &intent
	}
	for i := range story.Letters {
		view.DeadLetters[i] = viewLetter(&story.Letters[i])
	}
	return view
}
