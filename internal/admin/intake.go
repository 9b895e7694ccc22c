package admin

import (
	"log/slog"
	"net/http"
	"strings"
	"unicode"
)

const (
	// maxWhoBytes bounds the name of who acts, and maxWhyBytes the reason given.
	maxWhoBytes = 100
	maxWhyBytes = 200
)

// Intake is what takes records in, and can be told to stop that for a while.
type Intake interface {
	// Pause lets no further batch begin, until Resume, whatever partitions come and go.
	Pause(by, reason string)
	// Resume ends what Pause began; by is who says so.
	Resume(by string)
}

// pause stops the intake of this process, and shows what the consumer does then.
func (s *Server) pause(r *http.Request) (any, error) {
	by, reason, err := s.instruction(r)
	if err != nil {
		return nil, err
	}
	s.deps.Intake.Pause(by, reason)
	s.deps.Logger.LogAttrs(r.Context(), slog.LevelWarn, "pause asked for", slog.String("by", by), slog.String("reason", reason))
	return s.consumer(r)
}

// resume lets intake go on. Where nobody has paused it, nothing changes.
func (s *Server) resume(r *http.Request) (any, error) {
	by, reason, err := s.instruction(r)
	if err != nil {
		return nil, err
	}
	s.deps.Intake.Resume(by)
	s.deps.Logger.LogAttrs(r.Context(), slog.LevelWarn, "resume asked for", slog.String("by", by), slog.String("reason", reason))
	return s.consumer(r)
}

// instruction reads who acts and why.
func (s *Server) instruction(r *http.Request) (by, reason string, err error) {
	if by, err = printable(headerOperator, r.Header.Get(headerOperator), maxWhoBytes); err != nil {
		return "", "", err
	}
	if by == "" {
		by = "operator token"
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err = readBody(r, &body); err != nil {
		return "", "", err
	}
	reason, err = printable("reason", body.Reason, maxWhyBytes)
	return by, reason, err
}

// printable accepts a short text that can be shown on one line.
func printable(name, text string, most int) (string, error) {
	odd := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if len(text) > most || strings.ContainsFunc(text, odd) {
		return "", badParameter(name, "must be printable text of at most %d bytes", most)
	}
	return text, nil
}
