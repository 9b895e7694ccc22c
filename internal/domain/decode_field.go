package domain

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
)

const (
	// uuidBytes is the length of 01989f3a-5b6c-7d8e-9f01-23456789abcd. uuid.Parse
	// takes braces, urn:uuid: and bare hex too; the length tells them apart.
	uuidBytes = 36

	// maxIntegerBytes is the number of digits of 2^63-1.
	maxIntegerBytes = 19
)

// text returns the content of a field that must be a string.
func (m *members) text(field string) ([]byte, *InvalidError) {
	return m.textOr(field, "not a string")
}

// textOr is text with the words for another type.
func (m *members) textOr(field, otherwise string) ([]byte, *InvalidError) {
	raw := m.get(field)
	if raw == nil {
		return nil, invalid(ReasonMissingField, field, "absent")
	}
	if raw.Kind() != '"' {
		return nil, invalid(ReasonWrongType, field, "%s", otherwise)
	}
	return unquote(raw), nil
}

// constant checks a field that has one possible value.
func (m *members) constant(field string, reason Reason, want string) *InvalidError {
	text, err := m.text(field)
	if err != nil {
		return err
	}
	if string(text) != want {
		return invalid(reason, field, "must be %q", want)
	}
	return nil
}

// positive reads an id: digits only, so that no float stands between the two
// sides (1e3 and 1.0 are refused), from 1 to 2^63-1.
func (m *members) positive(field string, reason Reason) (int64, *InvalidError) {
	raw := m.get(field)
	if raw == nil {
		return 0, invalid(ReasonMissingField, field, "absent")
	}
	if raw.Kind() != '0' {
		return 0, invalid(ReasonWrongType, field, "not a number")
	}
	if len(raw) > maxIntegerBytes || bytes.ContainsAny(raw, "-.eE") {
		return 0, invalid(reason, field, "not a plain integer from 1 to 2^63-1")
	}
	id, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || id == 0 {
		return 0, invalid(reason, field, "not a plain integer from 1 to 2^63-1")
	}
	return id, nil
}

// bodyID reads the id of the body, and whether there is one.
func (m *members) bodyID() (id uuid.UUID, present bool, err *InvalidError) {
	if m.eventID == nil {
		return uuid.Nil, false, nil
	}
	text, err := m.text(fieldEventID)
	if err != nil {
		return uuid.Nil, true, err
	}
	id, ok := parseUUID(text)
	if !ok {
		return uuid.Nil, true, invalid(ReasonEventID, fieldEventID, "not a UUID of %d characters", uuidBytes)
	}
	return id, true, nil
}

// headerID reads the id of the headers, and whether there is one. A header that
// stands twice must say the same twice: which of the two is meant is a guess.
func headerID(headers []Header) (id uuid.UUID, present bool, err *InvalidError) {
	for _, header := range headers {
		if header.Key != headerEventID {
			continue
		}
		if !utf8.Valid(header.Value) {
			return uuid.Nil, true, invalid(ReasonEventIDHeader, headerEventID, "the header is not text")
		}
		next, ok := parseUUID(header.Value)
		if !ok {
			return uuid.Nil, true, invalid(ReasonEventIDHeader, headerEventID,
				"the header is not a UUID of %d characters", uuidBytes)
		}
		if present && next != id {
			return uuid.Nil, true, invalid(ReasonEventIDHeader, headerEventID, "several headers differ")
		}
		id, present = next, true
	}
	return id, present, nil
}

// parseUUID reads the 36-character form in any letter case, and no other.
func parseUUID(text []byte) (uuid.UUID, bool) {
	if len(text) != uuidBytes {
		return uuid.Nil, false
	}
	id, err := uuid.ParseBytes(text)
	return id, err == nil
}
