package admin

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// Names and bounds of parameters.
const (
	paramWindow  = "window"
	paramEventID = "eventId"
	paramOrderID = "orderId"
	paramStatus  = "status"
	paramReason  = "reason"
	paramState   = "state"
	paramCursor  = "cursor"
	paramLimit   = "limit"
	paramID      = "id"
	paramSince   = "since"
	paramUntil   = "until"
	paramDryRun  = "dryRun"
	paramKind    = "kind"
	paramStep    = "step"

	windowAll     = "all"
	defaultWindow = "1h"
	minWindow     = time.Minute
	maxWindow     = 400 * day // counters are kept by the hour for that long
	minutesKept   = 7 * day   // and by the minute for that long
	day           = 24 * time.Hour

	maxCursorBytes = 512
)

// params are the query parameters of a request. Each is given at most once; an
// empty one counts as not given.
type params struct{ values url.Values }

// parseParams refuses what the endpoint does not know: a misspelt filter would
// otherwise answer for all.
func parseParams(r *http.Request, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return params{}, newProblem(http.StatusBadRequest, "the query string is malformed")
	}
	for name, given := range values {
		if !slices.Contains(known, name) {
			return params{}, badParameter(strings.ToValidUTF8(name, "?"), "unknown parameter")
		}
		if len(given) > 1 {
			return params{}, badParameter(name, "given more than once")
		}
	}
	return params{values: values}, nil
}

// integer returns a positive integer, 0 when it is not given.
func (p params) integer(name string, most int64) (int64, error) {
	text := p.values.Get(name)
	if text == "" {
		return 0, nil
	}
	return positive(name, text, most)
}

func positive(name, text string, most int64) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || int64(n) > most || text[0] == '0' {
		return 0, badParameter(name, "must be an integer from 1 to %d", most)
	}
	return int64(n), nil
}

// page returns the cursor and the limit of a list.
func (p params) page() (cursor string, limit int, err error) {
	cursor = p.values.Get(paramCursor)
	if len(cursor) > maxCursorBytes {
		return "", 0, errCursor()
	}
	n, err := p.integer(paramLimit, domain.MaxPageLimit)
	if n == 0 {
		n = domain.DefaultPageLimit
	}
	return cursor, int(n), err
}

// letterFilter reads what dead letters are listed, or replayed, by.
func (p params) letterFilter() (filter domain.LetterFilter, err error) {
	if filter.Reason, err = oneOf(p, paramReason, domain.Reasons()); err != nil {
		return filter, err
	}
	if filter.State, err = oneOf(p, paramState, domain.LetterStates()); err != nil {
		return filter, err
	}
	if filter.EventID, err = p.eventID(); err != nil {
		return filter, err
	}
	if filter.Since, err = p.time(paramSince); err != nil {
		return filter, err
	}
	if filter.Until, err = p.time(paramUntil); err != nil {
		return filter, err
	}
	filter.Cursor, filter.Limit, err = p.page()
	return filter, err
}

// time returns an instant, zero when it is not given.
func (p params) time(name string) (time.Time, error) {
	text := p.values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, badParameter(name, "must be a time of RFC 3339")
	}
	return at, nil
}

// flag returns true or false; false when it is not given.
func (p params) flag(name string) (bool, error) {
	switch p.values.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, badParameter(name, "must be true or false")
}

func errCursor() *problem {
	return badParameter(paramCursor, "must be the next of an earlier page of this list")
}

// oneOf returns a value out of a list, and the empty one when it is not given.
func oneOf[T ~string](p params, name string, values []T) (T, error) {
	given := T(p.values.Get(name))
	if given == "" || slices.Contains(values, given) {
		return given, nil
	}
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = string(value)
	}
	return "", badParameter(name, "must be one of %s", strings.Join(names, ", "))
}

// eventID returns an event's id, uuid.Nil when it is not given.
func (p params) eventID() (uuid.UUID, error) {
	text := p.values.Get(paramEventID)
	if text == "" {
		return uuid.Nil, nil
	}
	return parseEventID(text)
}

// parseEventID takes the 36-character form only, like the events themselves.
func parseEventID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, badParameter(paramEventID, "must be a UUID in its 36-character form")
	}
	return id, nil
}

// pathID returns the positive integer in the path.
func pathID(r *http.Request) (int64, error) {
	return positive(paramID, chi.URLParam(r, paramID), 1<<63-1)
}

// window returns the window's name and length; 0 stands for all.
func (p params) window() (name string, length time.Duration, err error) {
	name = p.values.Get(paramWindow)
	switch name {
	case windowAll:
		return name, 0, nil
	case "":
		name = defaultWindow
	}
	length, ok := parseWindow(name)
	if !ok || length < minWindow || length > maxWindow {
		return "", 0, badParameter(paramWindow,
			"must be whole days, hours and minutes from 1m to 400d, as in 5m, 1h30m or 7d, or all")
	}
	return name, length, nil
}

// windowForm has no seconds, since counters are kept by the minute, and at most
// six digits a unit, which cannot overflow.
var windowForm = regexp.MustCompile(`^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?$`)

// parseWindow reads 7d, 24h, 1h30m, 1d12h.
func parseWindow(text string) (time.Duration, bool) {
	parts := windowForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var total time.Duration
	for i, unit := range []time.Duration{day, time.Hour, time.Minute} {
		n, _ := strconv.Atoi("0" + parts[i+1]) // digits or nothing
		total += time.Duration(n) * unit
	}
	return total, true
}
