package admin

import (
	"net/http"
	"strings"
	"time"
)

// healthView is the answer of the open routes.
type healthView struct {
	Status     Status          `json:"status"`
	Components []componentView `json:"components"`
}

type componentView struct {
	Name       string    `json:"name"`
	Status     Status    `json:"status"`
	Reason     string    `json:"reason"`
	Since      time.Time `json:"since"`
	AgeSeconds float64   `json:"age_seconds"` // how long it has been so
}

type aliveView struct {
	Status Status `json:"status"`
}

// live answers whether the process is well, whatever its neighbours do.
func (s *Server) live(*http.Request) (any, error) {
	if s.deps.Alive == nil {
		return aliveView{StatusOK}, nil
	}
	if err := s.deps.Alive(); err != nil {
		return nil, newProblem(http.StatusServiceUnavailable, err.Error())
	}
	return aliveView{StatusOK}, nil
}

// ready answers whether work can be done: no component fails.
func (s *Server) ready(r *http.Request) (any, error) {
	view := s.health.view(r)
	if view.Status != StatusFail {
		return view, nil
	}
	var failing []string
	for _, c := range view.Components {
		if c.Status == StatusFail {
			failing = append(failing, c.Name)
		}
	}
	p := newProblem(http.StatusServiceUnavailable, "not ready: "+strings.Join(failing, ", "))
	p.Components = view.Components
	return nil, p
}

// healthy shows every component. Its status is 200 whatever they are: it is to be
// read, where /readyz is to be acted on.
func (s *Server) healthy(r *http.Request) (any, error) { return s.health.view(r), nil }

func (h *health) view(r *http.Request) healthView {
	components, overall := h.look(r.Context())
	now := h.clock.Now()
	view := healthView{Status: overall, Components: make([]componentView, len(components))}
	for i, c := range components {
		view.Components[i] = componentView{
			Name: c.name, Status: c.Status, Reason: c.Reason, Since: c.Since.UTC(),
			AgeSeconds: max(0, now.Sub(c.Since).Round(time.Millisecond).Seconds()),
		}
	}
	return view
}
