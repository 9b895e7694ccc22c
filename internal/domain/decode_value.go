package domain

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// members are the raw values of an event's fields, aliasing the record's bytes;
// nil where a field is absent.
type members struct {
	eventID, eventType, occurredAt, aggregateType,
	orderID, customerID, totalAmount, currency jsontext.Value
}

// slot returns where the raw value of a field is kept, nil for an unknown name.
func (m *members) slot(name []byte) *jsontext.Value {
	switch string(name) {
	case fieldEventID:
		return &m.eventID
	case fieldEventType:
		return &m.eventType
	case fieldOccurredAt:
		return &m.occurredAt
	case fieldAggregateType:
		return &m.aggregateType
	case fieldOrderID:
		return &m.orderID
	case fieldCustomerID:
		return &m.customerID
	case fieldTotalAmount:
		return &m.totalAmount
	case fieldCurrency:
		return &m.currency
	}
	return nil
}

// get returns the raw value of a known field, nil when it is absent.
func (m *members) get(field string) jsontext.Value { return *m.slot([]byte(field)) }

// scanValue checks the value as a whole and finds the fields in it.
func scanValue(value []byte) (*members, *InvalidError) {
	switch {
	case value == nil:
		return nil, invalid(ReasonTombstone, "", "the value is null")
	case len(value) > MaxValueBytes:
		return nil, invalid(ReasonTooLarge, "", "%d bytes, more than %d", len(value), MaxValueBytes)
	case !utf8.Valid(value):
		return nil, invalid(ReasonUTF8, "", "the value is not valid UTF-8")
	}
	// From a bytes.Buffer the decoder reads in place and leaves the bytes alone.
	tokens := jsontext.NewDecoder(bytes.NewBuffer(value))
	switch tokens.PeekKind() {
	case '{':
		return scanObject(tokens, value)
	default:
		if _, err := tokens.ReadValue(); err != nil {
			return nil, syntaxError(err)
		}
		return nil, invalid(ReasonNotObject, "", "JSON, but not an object")
	}
}

// scanObject walks the members of the top-level object. A letter case fault is
// reported only when the whole value is sound.
func scanObject(tokens *jsontext.Decoder, value []byte) (*members, *InvalidError) {
	found := &members{}
	var miscased *InvalidError
	if _, err := tokens.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	for tokens.PeekKind() != '}' {
		raw, err := tokens.ReadValue()
		if err != nil {
			return nil, syntaxError(err)
		}
		slot := found.slot(unquote(raw))
		if slot == nil && miscased == nil {
			miscased = checkCase(unquote(raw))
		}
		if raw, err = tokens.ReadValue(); err != nil {
			return nil, syntaxError(err)
		}
		if slot != nil {
			end := tokens.InputOffset()
			*slot = value[end-int64(len(raw)) : end]
		}
	}
	if _, err := tokens.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, invalid(ReasonTrailingData, "", "data follows the object after byte %d", tokens.InputOffset())
	}
	return found, miscased
}

// syntaxError translates a fault that the token reader found. Its own text is
// not used: it quotes the value.
func syntaxError(err error) *InvalidError {
	if errors.Is(err, io.EOF) {
		return invalid(ReasonEmpty, "", "the value has no content")
	}
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return invalid(ReasonJSON, "", "not JSON")
	}
	if !errors.Is(err, jsontext.ErrDuplicateName) {
		return invalid(ReasonJSON, "", "not JSON at byte %d", syntactic.ByteOffset)
	}
	field := ""
	if name := syntactic.JSONPointer.LastToken(); syntactic.JSONPointer.Parent() == "" &&
		(&members{}).slot([]byte(name)) != nil {
		field = name
	}
	return invalid(ReasonDuplicateKey, field, "an object has a name twice at byte %d", syntactic.ByteOffset)
}

// checkCase returns a fault when a name is that of a field but for its case.
// Such a field would be skipped as unknown, though somebody meant it.
func checkCase(name []byte) *InvalidError {
	for _, field := range [...]string{
		fieldEventID, fieldEventType, fieldOccurredAt, fieldAggregateType,
		fieldOrderID, fieldCustomerID, fieldTotalAmount, fieldCurrency,
	} {
		if bytes.EqualFold(name, []byte(field)) {
			return invalid(ReasonFieldCase, field, "spelt with other letter case")
		}
	}
	return nil
}

// unquote returns the content of a JSON string that the token reader accepted.
// Without escapes, as good as always, it aliases the string.
func unquote(raw jsontext.Value) []byte {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil { // cannot be: the reader has checked it
		return nil
	}
	return text
}
