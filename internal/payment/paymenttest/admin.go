package paymenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxPlanBytes bounds a fault plan sent to PUT /_faults.
const maxPlanBytes = 1 << 20

func (p *Provider) getLedger(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, p.Ledger())
}

// getLedgerCharges streams the keys, one JSON object per line.
func (p *Provider) getLedgerCharges(w http.ResponseWriter, r *http.Request) {
	minPosts := 0
	if text := r.URL.Query().Get("minPosts"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			writeError(w, http.StatusBadRequest, "min_posts_invalid")
			return
		}
		minPosts = n
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	for charge := range p.Charges() {
		if charge.Posts < minPosts {
			continue
		}
		if encoder.Encode(charge) != nil {
			return // the reader is gone
		}
	}
}

func (p *Provider) getFaults(w http.ResponseWriter, _ *http.Request) {
	writeValue(w, p.Faults())
}

func (p *Provider) putFaults(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPlanBytes))
	if err != nil {
		writeProblem(w, err)
		return
	}
	var faults Faults
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
		faults, err = ParseFaults(string(body))
	} else {
		faults, err = decodeFaults(body)
	}
	if err == nil {
		err = p.SetFaults(faults)
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	writeValue(w, p.Faults())
}

func (p *Provider) postReset(w http.ResponseWriter, _ *http.Request) {
	p.Reset()
	w.WriteHeader(http.StatusNoContent)
}

func getHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// writeProblem tells a person what is wrong with their fault plan.
func writeProblem(w http.ResponseWriter, err error) {
	text := appendString([]byte(`{"error":`), err.Error())
	writeJSON(w, http.StatusBadRequest, append(text, '}'))
}

func writeError(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, []byte(`{"code":"`+code+`"}`))
}

func writeValue(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, text)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeBody(w, status, "application/json", body)
}

// writeBody answers. That the client may be gone by now is its own affair.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func appendString(to []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		return append(to, `""`...) // a string always marshals
	}
	return append(to, text...)
}
