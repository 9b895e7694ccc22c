package payment

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"example.com/billing/internal/domain"
)

// attempt makes one POST within the attempt timeout, observed.
func (c *Client) attempt(ctx context.Context, request domain.ChargeRequest, body []byte, nth int) result {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	ctx, done := c.telemetry.start(ctx, request, nth)
	answer := c.exchange(ctx, request, body)
	done(answer.Answer)
	return answer
}

// exchange sends one request and gives its outcome a meaning.
func (c *Client) exchange(ctx context.Context, request domain.ChargeRequest, body []byte) result {
	var wire wire
	post, err := c.newRequest(wire.watch(ctx), request, body)
	if err != nil {
		return failure(ctx, false, err)
	}
	response, err := c.transport.RoundTrip(post)
	if err != nil {
		return failure(ctx, wire.sent(), err)
	}
	defer response.Body.Close()
	kept, err := readBody(response.Body)
	return c.read(ctx, response, kept, err)
}

func (c *Client) newRequest(ctx context.Context, request domain.ChargeRequest, body []byte) (*http.Request, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// With GetBody the transport would send the request again by itself when a reused
	// connection breaks, because it has an Idempotency-Key: a POST that nobody counts.
	post.GetBody = nil
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Idempotency-Key", request.EventID.String())
	c.authorise(post.Header)
	c.telemetry.inject(ctx, post.Header)
	return post, nil
}

// read gives meaning to a response whose body was read with the given error.
func (c *Client) read(ctx context.Context, response *http.Response, kept []byte, err error) result {
	line := meaningOf(response.StatusCode)
	answer := domain.Answer{Status: response.StatusCode, Posts: 1, Detail: describe(response.StatusCode)}
	if err != nil {
		line = line.incomplete()
		answer.Detail += ": body incomplete: " + reason(ctx, err)
	}
	switch line.kind {
	case domain.Captured:
		answer.ProviderChargeID = members(kept, "id")["id"]
	case domain.Declined:
		found := members(kept, "id", "decline_code", "code")
		answer.ProviderChargeID = found["id"]
		answer.DeclineCode = found["decline_code"]
		if answer.DeclineCode == "" {
			answer.DeclineCode = found["code"]
		}
	default:
		if code := shortCode(members(kept, "code")["code"]); code != "" {
			answer.Detail += ": " + code
		}
	}
	result := line.result(answer)
	if line.kind == domain.Unknown || line.kind == domain.Misconfigured {
		result.RetryAfter, result.told = retryAfter(response.Header.Get("Retry-After"), c.clock.Now())
	}
	return result
}

// describe returns "503 service unavailable".
func describe(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + strings.ToLower(http.StatusText(status)))
}
