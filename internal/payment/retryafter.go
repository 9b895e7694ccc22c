package payment

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds how long a provider can make us wait.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header: seconds, or an HTTP date. It returns a
// duration from 0 to maxRetryAfter, and whether there was one that makes sense.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if isDigits(header) {
		seconds, err := strconv.ParseUint(header, 10, 32)
		if err != nil { // more than any bound
			return maxRetryAfter, true
		}
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
