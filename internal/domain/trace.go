package domain

const (
	headerTraceParent = "traceparent"
	headerTraceState  = "tracestate"

	// traceParentBytes is the length of version 00: 2+32+16+2 hex digits, 3 dashes.
	traceParentBytes = 55
	// maxTraceStateBytes is what W3C Trace Context asks everyone to propagate at least.
	maxTraceStateBytes = 512
)

// TraceContext returns the W3C trace context of the record's headers. A
// traceparent that is malformed counts as none, and without one there is no
// tracestate; a malformed tracestate is dropped alone. Neither makes a record
// invalid. Of a later version only the part that version 00 defines is kept, so
// that the result has at most 55 and 512 bytes of printable ASCII.
func (r *Record) TraceContext() (traceParent, traceState string) {
	value, _ := r.Header(headerTraceParent)
	if !validTraceParent(value) {
		return "", ""
	}
	traceParent = string(value[:traceParentBytes])
	if value, _ = r.Header(headerTraceState); validTraceState(value) {
		traceState = string(value)
	}
	return traceParent, traceState
}

// validTraceParent checks version-traceid-parentid-flags, all lower-case hex.
func validTraceParent(value []byte) bool {
	if len(value) < traceParentBytes || value[2] != '-' || value[35] != '-' || value[52] != '-' {
		return false
	}
	version, traceID, parentID, flags := value[:2], value[3:35], value[36:52], value[53:55]
	if !lowerHex(version) || !lowerHex(traceID) || !lowerHex(parentID) || !lowerHex(flags) {
		return false
	}
	if string(version) == "ff" || zeros(traceID) || zeros(parentID) {
		return false
	}
	// Version 00 ends here; a later one may go on behind another dash.
	return len(value) == traceParentBytes || string(version) != "00" && value[traceParentBytes] == '-'
}

func validTraceState(value []byte) bool {
	if len(value) > maxTraceStateBytes {
		return false
	}
	for _, b := range value {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

func lowerHex(value []byte) bool {
	for _, b := range value {
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') {
			return false
		}
	}
	return true
}

func zeros(value []byte) bool {
	for _, b := range value {
		if b != '0' {
			return false
		}
	}
	return true
}
