package admin

import (
	"net/http"
	"time"
)

// consumerView is what the consumer of this process does now.
type consumerView struct {
	Topic            string           `json:"topic"`
	Group            string           `json:"group"`
	OffsetStore      string           `json:"offset_store"`
	Running          bool             `json:"running"`
	LastPoll         *time.Time       `json:"last_poll"`
	BrokerError      *string          `json:"broker_error"`
	BrokerErrorSince *time.Time       `json:"broker_error_since"`
	Fatal            *string          `json:"fatal"`
	LeavingLanes     int              `json:"leaving_lanes"`
	Paused           bool             `json:"paused"`
	Pauses           []pauseView      `json:"pauses"`
	Queued           int              `json:"queued"`
	InFlight         int              `json:"in_flight"`
	Lag              *int64           `json:"lag"` // of all assigned partitions; null while one is unknown
	Assignment       []assignmentView `json:"assignment"`
}

type pauseView struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Since  *time.Time `json:"since"`
}

// assignmentView is one assigned partition; offsets are null while unknown.
type assignmentView struct {
	Partition       int32   `json:"partition"`
	State           string  `json:"state"`
	Queued          int     `json:"queued"`
	Batches         int     `json:"batches"`
	InFlight        int     `json:"in_flight"`
	NextOffset      *int64  `json:"next_offset"`
	CommittedOffset *int64  `json:"committed_offset"`
	HighWatermark   *int64  `json:"high_watermark"`
	Lag             *int64  `json:"lag"`
	Paused          *string `json:"paused"`
	Failures        int     `json:"failures"`
	LastError       *string `json:"last_error"`
}

// consumer shows the assignment, the lag, and who paused what.
func (s *Server) consumer(r *http.Request) (any, error) {
	if _, err := parseParams(r); err != nil {
		return nil, err
	}
	now := s.deps.Consumer()
	view := consumerView{
		Topic: now.Topic, Group: now.Group, OffsetStore: now.OffsetStore, Running: now.Running, LastPoll: instant(now.LastPoll),
		BrokerError: optional(now.BrokerError), BrokerErrorSince: instant(now.BrokerErrorSince),
		Fatal: optional(now.Fatal), LeavingLanes: now.LeavingLanes,
		Paused: len(now.Pauses) > 0, Pauses: make([]pauseView, len(now.Pauses)),
		Assignment: make([]assignmentView, len(now.Partitions)),
	}
	for i, pause := range now.Pauses {
		view.Pauses[i] = pauseView{By: pause.By, Reason: pause.Reason, Since: instant(pause.Since)}
	}
	lag, known := int64(0), true
	for i := range now.Partitions {
		p := &now.Partitions[i]
		view.Assignment[i] = viewAssignment(p)
		view.Queued += p.Queued
		view.InFlight += p.InFlight
		lag += p.Lag
		known = known && p.Lag >= 0
	}
	if known {
		view.Lag = &lag
	}
	return view, nil
}

func viewAssignment(p *PartitionStatus) assignmentView {
	return assignmentView{
		Partition: p.Partition, State: p.State, Queued: p.Queued, Batches: p.Batches, InFlight: p.InFlight,
		NextOffset: offset(p.Done), CommittedOffset: offset(p.Committed),
		HighWatermark: offset(p.HighWatermark), Lag: offset(p.Lag),
		Paused: optional(p.Paused), Failures: p.Failures, LastError: optional(p.LastError),
	}
}

// offset returns nil for one that is not known.
func offset(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
