package payment

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/billing/internal/domain"
)

const (
	maxHeaderBytes = 64 << 10
	// maxKeptBytes of an answer's body are looked at, maxBodyBytes are read to see
	// whether it is complete.
	maxKeptBytes = 64 << 10
	maxBodyBytes = 32 << 20

	maxIDRunes   = 255
	maxCodeBytes = 64
)

var errBodyTooLong = errors.New("payment: body over 32 MiB")

// payload is the body of the POST: a pure function of the request, byte for byte
// the same on every attempt and after every deploy, since providers compare it.
func payload(request domain.ChargeRequest) []byte {
	body := make([]byte, 0, 80)
	body = append(body, `{"orderId":`...)
	body = strconv.AppendInt(body, request.OrderID, 10)
	body = append(body, `,"amount":`...)
	body = append(body, request.Amount.Decimal()...)
	body = append(body, `,"currency":"`...)
	body = append(body, request.Amount.Currency().Code()...)
	return append(body, `"}`...)
}

// readBody reads to the end and returns the beginning. The error says that the
// body is not complete.
func readBody(body io.Reader) ([]byte, error) {
	kept, err := io.ReadAll(io.LimitReader(body, maxKeptBytes))
	if err != nil || len(kept) < maxKeptBytes {
		return kept, err
	}
	const rest = maxBodyBytes - maxKeptBytes
	n, err := io.Copy(io.Discard, io.LimitReader(body, rest+1))
	if err == nil && n > rest {
		err = errBodyTooLong
	}
	return kept, err
}

// members returns those top-level members of a JSON object that are asked for and
// are sane strings; of a repeated one the first. What is no JSON object, or no
// longer one after some point, has none from there on.
func members(body []byte, names ...string) map[string]string {
	found := make(map[string]string, len(names))
	// As lenient as the usual readers of JSON: what is odd elsewhere in the body is not our affair.
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if start, err := decoder.ReadToken(); err != nil || start.Kind() != jsontext.KindBeginObject {
		return found
	}
	for decoder.PeekKind() == jsontext.KindString {
		token, err := decoder.ReadToken()
		if err != nil {
			return found
		}
		name := token.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return found
		}
		for _, wanted := range names {
			if _, repeated := found[wanted]; name == wanted && !repeated {
				found[wanted] = saneString(value)
			}
		}
	}
	return found
}

// saneString returns the value of a JSON string that is fit to be stored and
// shown, else "".
func saneString(value jsontext.Value) string {
	if value.Kind() != jsontext.KindString {
		return ""
	}
	raw, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "" // invalid UTF-8, or half a surrogate pair
	}
	s := string(raw)
	if utf8.RuneCountInString(s) > maxIDRunes {
		return ""
	}
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ""
		}
	}
	return s
}

// shortCode lets a provider's error code into logs if it can hardly be anything
// else: a short word of ASCII letters, digits and "_.-".
func shortCode(s string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if len(s) > maxCodeBytes || strings.Trim(s, allowed) != "" {
		return ""
	}
	return s
}
