package paymenttest

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const hugeIDBytes = 10 << 20

// isBefore reports whether the fault comes before any charge. A nil rule is no fault.
func (r *rule) isBefore() bool { return r != nil && !r.charges }

// playBefore plays a fault that charges nothing and reports whether the POST goes on
// all the same.
func (p *Provider) playBefore(fault *rule, w http.ResponseWriter, r *http.Request) bool {
	switch fault.effect {
	case effectHang:
		return p.hold(r, fault.hold())
	case effectReset:
		drop(w, "", true)
	default:
		writeFaultStatus(w, fault)
	}
	return false
}

// playAfter answers a POST whose key is settled, in the way of the fault if there
// is one.
func (p *Provider) playAfter(fault *rule, w http.ResponseWriter, r *http.Request, e entry) {
	if fault == nil || !fault.charges || e.status == declined {
		writeSettled(w, &e)
		return
	}
	switch fault.effect {
	case effectStatus:
		writeFaultStatus(w, fault)
	case effectReset:
		drop(w, "", true)
	case effectCut:
		drop(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4096\r\n\r\n{\"id\":\"ch_", false)
	case effectHang:
		if p.hold(r, fault.hold()) {
			writeSettled(w, &e)
		}
	case effectHugeID:
		writeJSON(w, http.StatusOK, []byte(`{"id":"`+strings.Repeat("x", hugeIDBytes)+`","status":"captured"}`))
	case effectNulID:
		writeJSON(w, http.StatusOK, []byte(`{"id":"ch_\u0000`+chargeID(e.id)+`","status":"captured"}`))
	case effectNotJSON:
		writeBody(w, http.StatusOK, "text/html", []byte("<html><body>charged, thank you</body></html>"))
	case effectDecline: // the key was captured before the rule came
		writeSettled(w, &e)
	}
}

func (r *rule) hold() time.Duration {
	if r.Hold == 0 {
		return MaxHold
	}
	return time.Duration(r.Hold)
}

func writeFaultStatus(w http.ResponseWriter, fault *rule) {
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
	}
	if fault.status/100 == 3 {
		location := fault.Location
		if location == "" {
			location = "/v1/charges"
		}
		w.Header().Set("Location", location)
	}
	if fault.status == http.StatusNotModified {
		w.WriteHeader(fault.status) // may have no body
		return
	}
	writeError(w, fault.status, "injected_fault")
}

// drop sends raw bytes and ends the connection: with a reset (RST), or as if the
// process had gone (FIN).
func drop(w http.ResponseWriter, raw string, reset bool) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // no connection to play with; the nearest thing to it
	}
	defer conn.Close()
	_, _ = buffered.WriteString(raw)
	_ = buffered.Flush()
	if !reset {
		return
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn() // a reset is TCP's, below TLS
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

// writeSettled gives the answer that the key has for good.
func writeSettled(w http.ResponseWriter, e *entry) {
	if e.status == declined {
		writeJSON(w, http.StatusPaymentRequired, appendCharge(nil, e))
		return
	}
	writeJSON(w, http.StatusOK, appendCharge(nil, e))
}

// appendCharge appends the contract's charge object. It is written by hand since
// it is the hot path; nothing in it needs escaping but the decline code.
func appendCharge(to []byte, e *entry) []byte {
	to = append(to, `{"id":"`...)
	to = append(to, chargeID(e.id)...)
	to = append(to, `","status":"`...)
	to = append(to, e.status.String()...)
	to = append(to, `","orderId":`...)
	to = strconv.AppendInt(to, e.payload.orderID, 10)
	to = append(to, `,"amount":`...)
	to = append(to, e.payload.amount.Decimal()...)
	to = append(to, `,"currency":"`...)
	to = append(to, e.payload.amount.Currency().Code()...)
	to = append(to, '"')
	if e.status == declined {
		to = append(to, `,"decline_code":`...)
		to = appendString(to, e.declineCode)
	}
	return append(to, '}')
}
