package payment

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestPayloadIsAPureFunctionOfTheMeaning(t *testing.T) {
	t.Parallel()
	cases := []struct {
		minor    uint64
		currency string
		orderID  int64
		want     string
	}{
		{1050, "EUR", 1, `{"orderId":1,"amount":10.50,"currency":"EUR"}`},
		{100, "JPY", 2, `{"orderId":2,"amount":100,"currency":"JPY"}`},
		{1, "KWD", 3, `{"orderId":3,"amount":0.001,"currency":"KWD"}`},
		{1, "USD", math.MaxInt64, `{"orderId":9223372036854775807,"amount":0.01,"currency":"USD"}`},
		{99_999_999_999_999_999, "EUR", 4, `{"orderId":4,"amount":999999999999999.99,"currency":"EUR"}`},
	}
	for _, c := range cases {
		amount, err := domain.NewMoney(c.minor, c.currency)
		require.NoError(t, err)
		require.Equal(t, c.want, string(payload(domain.ChargeRequest{OrderID: c.orderID, Amount: amount})))
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ body, want string }{
		"a sane string":                     {`{"id":"ch_1"}`, "ch_1"},
		"behind other members":              {`{"a":{"id":"no"},"b":[1,{"id":"no"}],"id":"ch_1"}`, "ch_1"},
		"255 characters":                    {`{"id":"` + strings.Repeat("é", 255) + `"}`, strings.Repeat("é", 255)},
		"256 characters":                    {`{"id":"` + strings.Repeat("é", 256) + `"}`, ""},
		"the first of two":                  {`{"id":"ch_1","id":"ch_2"}`, "ch_1"},
		"cut off behind it":                 {`{"id":"ch_1","rest":"`, "ch_1"},
		"cut off within it":                 {`{"id":"ch_`, ""},
		"a number":                          {`{"id":12}`, ""},
		"null":                              {`{"id":null}`, ""},
		"an object":                         {`{"id":{"id":"x"}}`, ""},
		"another case":                      {`{"ID":"ch_1"}`, ""},
		"NUL":                               {`{"id":"ch\u0000"}`, ""},
		"a line feed":                       {`{"id":"ch\n1"}`, ""},
		"an escape to change the direction": {`{"id":"ch\u202e1"}`, ""},
		"a lone surrogate":                  {`{"id":"ch\ud800"}`, ""},
		"invalid UTF-8":                     {"{\"id\":\"ch\xff\"}", ""},
		"an array":                          {`["id","ch_1"]`, ""},
		"a string":                          {`"id"`, ""},
		"nothing":                           {``, ""},
		"no JSON":                           {`<html>`, ""},
		"nested without end":                {`{"a":` + strings.Repeat("[", 60_000), ""},
	}
	for name, c := range cases {
		require.Equal(t, c.want, members([]byte(c.body), "id")["id"], name)
	}
}

func TestDeclineCodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"decline_code": "no_funds", "code": "declined"},
		members([]byte(`{"code":"declined","decline_code":"no_funds"}`), "decline_code", "code"))
}

func TestShortCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, "key_in-use.2", shortCode("key_in-use.2"))
	for _, s := range []string{"", "two words", "é", "a\n", "<b>", strings.Repeat("a", 65), "a b a"} {
		require.Empty(t, shortCode(s), s)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		header string
		want   time.Duration
		told   bool
	}{
		"seconds":                     {"120", 2 * time.Minute, true},
		"white space around":          {" 3 ", 3 * time.Second, true},
		"zero":                        {"0", 0, true},
		"a date":                      {"Sun, 01 Mar 2026 12:00:07 GMT", 7 * time.Second, true},
		"a date in the past":          {"Sun, 01 Mar 2026 11:00:00 GMT", 0, true},
		"a date far ahead":            {"Sun, 01 Mar 2099 11:00:00 GMT", time.Hour, true},
		"more than an hour":           {"3601", time.Hour, true},
		"more than 32 bits":           {"4294967296", time.Hour, true},
		"more than any integer holds": {strings.Repeat("9", 50), time.Hour, true},
		"none":                        {"", 0, false},
		"negative":                    {"-1", 0, false},
		"signed":                      {"+1", 0, false},
		"a fraction":                  {"1.5", 0, false},
		"a word":                      {"soon", 0, false},
	}
	for name, c := range cases {
		got, told := retryAfter(c.header, now)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.told, told, name)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"1", "-1", "99999999999999999999", "Sun, 01 Mar 2026 12:00:07 GMT", "", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got, told := retryAfter(header, time.Unix(1_700_000_000, 0))
		if got < 0 || got > maxRetryAfter || (!told && got != 0) {
			t.Fatalf("%q: %s, %v", header, got, told)
		}
	})
}

func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"id":"ch_1"}`, `{"id":"\u0000"}`, `{"id":"\ud800"}`, "{\"id\":\"\xff\"}", `{"a":[1,{"b":2}],"id":"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id := members(body, "id", "code")["id"]
		if !utf8.ValidString(id) || utf8.RuneCountInString(id) > maxIDRunes || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%q let %q through", body, id)
		}
		var whole map[string]json.RawMessage // where encoding/json sees an id, it must be the same
		if id != "" && json.Unmarshal(body, &whole) == nil && strings.Count(string(body), `"`) == 4 {
			var want string
			if json.Unmarshal(whole["id"], &want) != nil || want != id {
				t.Fatalf("%q: got %q, want %q", body, id, want)
			}
		}
	})
}
