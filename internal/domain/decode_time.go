package domain

import (
	"bytes"
	"time"
)

const (
	// maxInstantBytes bounds occurredAt; RFC 3339 itself bounds no fraction.
	maxInstantBytes = 64

	instantShape = "0000-00-00T00:00:00" // 0 stands for a digit
	offsetShape  = "00:00"
)

// parseInstant reads an RFC 3339 time of the years 1 to 9999 in UTC. Digits
// below the nanosecond are cut off. A leap second, which only the last minute of
// a UTC month may have, is the instant behind it, as it is to PostgreSQL.
func parseInstant(text []byte) (time.Time, *InvalidError) {
	if len(text) > maxInstantBytes {
		return time.Time{}, errInstant()
	}
	literal := bytes.ToUpper(text) // RFC 3339 allows t and z
	if !isInstant(literal) {
		return time.Time{}, errInstant()
	}
	leap := string(literal[17:19]) == "60"
	if leap {
		copy(literal[17:19], "59")
	}
	instant, err := time.Parse(time.RFC3339Nano, string(literal))
	if err != nil {
		return time.Time{}, errInstant()
	}
	instant = instant.UTC()
	if leap {
		instant = instant.Add(time.Second)
		if instant.Day() != 1 || instant.Hour() != 0 || instant.Minute() != 0 || instant.Second() != 0 {
			return time.Time{}, errInstant()
		}
	}
	if year := instant.Year(); year < 1 || year > 9999 {
		return time.Time{}, invalid(ReasonOccurredAt, fieldOccurredAt, "outside the years 1 to 9999 in UTC")
	}
	return instant, nil
}

// isInstant checks the shape of RFC 3339. The time package, which then checks
// the numbers, also takes a comma for the point, hours of one digit and offsets
// of 24 hours and more.
func isInstant(literal []byte) bool {
	rest, ok := cutShape(literal, instantShape)
	if !ok {
		return false
	}
	if len(rest) > 0 && rest[0] == '.' {
		fraction := bytes.TrimLeft(rest[1:], "0123456789")
		if len(fraction) == len(rest)-1 {
			return false
		}
		rest = fraction
	}
	if string(rest) == "Z" {
		return true
	}
	if len(rest) == 0 || rest[0] != '+' && rest[0] != '-' {
		return false
	}
	offset := rest[1:]
	rest, ok = cutShape(offset, offsetShape)
	return ok && len(rest) == 0 && string(offset) < "24" && offset[3] < '6'
}

// cutShape returns what follows a shape, and whether text begins with it.
func cutShape(text []byte, shape string) ([]byte, bool) {
	if len(text) < len(shape) {
		return nil, false
	}
	for i := range len(shape) {
		digit := text[i] >= '0' && text[i] <= '9'
		if shape[i] == '0' && !digit || shape[i] != '0' && text[i] != shape[i] {
			return nil, false
		}
	}
	return text[len(shape):], true
}

func errInstant() *InvalidError {
	return invalid(ReasonOccurredAt, fieldOccurredAt, "not an RFC 3339 time")
}
