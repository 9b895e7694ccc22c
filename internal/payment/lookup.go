package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
)

var _ domain.Finder = (*Client)(nil)

// maxFoundBytes bounds the answer to a look-up.
const maxFoundBytes = 64 << 10

// Find looks a charge up by its key, in one request within the attempt timeout. It
// believes nothing but a complete 200 that says all that was charged, and 404: no
// charge with this key was carried out or may yet be. Everything else is an error,
// in fixed words.
func (c *Client) Find(ctx context.Context, key uuid.UUID) (domain.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var found domain.Found
	var failed error
	c.telemetry.lookUp(ctx, func(ctx context.Context) (status int, err error) {
		found, status, failed = c.find(ctx, key)
		return status, failed
	})
	if failed != nil {
		return domain.Found{}, fmt.Errorf("look-up: %w", failed)
	}
	return found, nil
}

func (c *Client) find(ctx context.Context, key uuid.UUID) (found domain.Found, status int, err error) {
	target := *c.url
	target.RawQuery = url.Values{"idempotencyKey": {key.String()}}.Encode()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return found, 0, errors.New("no request") // its text holds the URL
	}
	c.authorise(get.Header)
	c.telemetry.inject(ctx, get.Header)
	response, err := c.transport.RoundTrip(get)
	if err != nil {
		return found, 0, errors.New(reason(ctx, err))
	}
	defer response.Body.Close()
	status = response.StatusCode
	body, err := readBody(response.Body)
	switch {
	case err != nil:
		return found, status, fmt.Errorf("%s: body incomplete: %s", describe(status), reason(ctx, err))
	case status == http.StatusNotFound:
		return domain.Found{}, status, nil
	case status != http.StatusOK:
		return found, status, errors.New(describe(status))
	case len(body) == maxFoundBytes:
		return found, status, errors.New("200 ok: longer than 64 KiB")
	}
	found, err = parseFound(body)
	return found, status, err
}

// parseFound reads what was charged under a key. Every member has to be there and
// to make sense: money is decided by it.
func parseFound(body []byte) (domain.Found, error) {
	var members map[string]json.RawMessage // by their exact names
	if err := json.Unmarshal(body, &members); err != nil {
		return domain.Found{}, errors.New("200 ok: not a JSON object")
	}
	found := domain.Found{
		Known: true, ProviderChargeID: saneString(jsontext.Value(members["id"])), DeclineCode: saneString(jsontext.Value(members["decline_code"])),
	}
	switch status := saneString(jsontext.Value(members["status"])); status {
	case "captured":
		found.Status = domain.ChargeCaptured
	case "declined":
		found.Status = domain.ChargeDeclined
	default:
		return domain.Found{}, errors.New("200 ok: status is neither captured nor declined")
	}
	var err error
	if found.OrderID, err = strconv.ParseInt(string(members["orderId"]), 10, 64); err != nil || found.OrderID <= 0 {
		return domain.Found{}, errors.New("200 ok: orderId is not a whole number above zero")
	}
	if found.Amount, err = domain.ParseMoney(string(members["amount"]), saneString(jsontext.Value(members["currency"]))); err != nil {
		return domain.Found{}, errors.New("200 ok: amount and currency are not money")
	}
	return found, nil
}

// authorise says who we are, as configured.
func (c *Client) authorise(header http.Header) {
	switch {
	case c.config.APIKey != "":
		header.Set("Authorization", "Bearer "+c.config.APIKey)
	case c.user != nil:
		password, _ := c.user.Password()
		as := http.Request{Header: header}
		as.SetBasicAuth(c.user.Username(), password)
	}
}

// lookUp runs a look-up inside a span of its own, and counts how it went.
func (t *telemetry) lookUp(ctx context.Context, run func(context.Context) (status int, err error)) {
	ctx, span := t.tracer.Start(ctx, "GET /v1/charges", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.server[1:]...),
		trace.WithAttributes(semconv.HTTPRequestMethodGet))
	defer span.End()
	status, err := run(ctx)
	if status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	outcome := "found"
	switch {
	case err != nil:
		outcome = "failed"
		span.SetStatus(codes.Error, err.Error())
	case status == http.StatusNotFound:
		outcome = "missing"
	}
	t.lookUps.Add(ctx, 1, metric.WithAttributes(attribute.String("billing.outcome", outcome)))
}
