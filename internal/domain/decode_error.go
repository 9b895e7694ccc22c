package domain

import (
	"fmt"
	"strings"
)

// MaxDetailBytes bounds the detail of an [InvalidError].
const MaxDetailBytes = 200

// InvalidError says that a record can never be processed, and why. It holds no
// value of the record, so that it can be logged and shown.
type InvalidError struct {
	// Reason is the one reason that the order of checks of [Decoder.Decode] gives.
	Reason Reason
	// Field is the known field or header at fault; empty when it is the whole value.
	Field string
	// Detail says what is wrong, in at most [MaxDetailBytes] bytes of valid UTF-8.
	Detail string
}

// Error returns "invalid_currency: currency: not an ISO 4217 code".
func (e *InvalidError) Error() string {
	if e.Field == "" {
		return string(e.Reason) + ": " + e.Detail
	}
	return string(e.Reason) + ": " + e.Field + ": " + e.Detail
}

// invalid builds an InvalidError and keeps its detail within bounds.
func invalid(reason Reason, field, format string, args ...any) *InvalidError {
	detail := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
	if len(detail) > MaxDetailBytes {
		detail = strings.ToValidUTF8(detail[:MaxDetailBytes], "") // drops half a letter at the end
	}
	return &InvalidError{Reason: reason, Field: field, Detail: detail}
}
