package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

// problem is an error as the client sees it (RFC 9457). Its type is about:blank:
// the status says what it is, the title repeats that, and detail explains.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
	// Parameter names the parameter that is at fault.
	Parameter string `json:"parameter,omitempty"`
	// Components are what readiness rests on.
	Components []componentView `json:"components,omitempty"`
}

// Error returns the detail: a problem is also how endpoints fail.
func (p *problem) Error() string { return p.Detail }

func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func notFound(detail string) *problem { return newProblem(http.StatusNotFound, detail) }

// badParameter names the parameter and says what it should be.
func badParameter(name, format string, args ...any) *problem {
	p := newProblem(http.StatusBadRequest, name+": "+fmt.Sprintf(format, args...))
	p.Parameter = name
	return p
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	full := *p
	full.Instance = r.URL.EscapedPath()
	writeJSON(w, typeProblem, p.Status, full)
}

// writeJSON writes a value whole or not at all: it is encoded before the status
// is sent. What cannot be encoded is a bug, and panics into a 500.
func writeJSON(w http.ResponseWriter, contentType string, status int, value any) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(value); err != nil {
		panic(fmt.Errorf("encode a response: %w", err))
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client is gone: nobody to tell
}
