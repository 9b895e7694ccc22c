package payment

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"example.com/billing/internal/domain"
)

// Tools are what the client works with. What is nil is the real thing: the
// machine's clock, and OpenTelemetry's global providers.
type Tools struct {
	Clock  domain.Clock
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider
}

// Client charges through the provider's HTTP API. It implements [domain.Provider]
// and is safe for concurrent use.
type Client struct {
	config    Config
	url       *url.URL
	user      *url.Userinfo // of the configured URL
	transport *http.Transport
	clock     domain.Clock
	telemetry *telemetry
}

var _ domain.Provider = (*Client)(nil)

// New returns a client. The error joins every complaint about the configuration.
func New(config Config, tools Tools) (*Client, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	base, err := url.Parse(config.URL)
	if err != nil {
		return nil, fmt.Errorf("payment: url: %w", err)
	}
	user := base.User
	base.User = nil
	if tools.Clock == nil {
		tools.Clock = domain.SystemClock{}
	}
	charges := base.JoinPath("v1", "charges")
	observer, err := newTelemetry(tools, charges)
	if err != nil {
		return nil, fmt.Errorf("payment: %w", err)
	}
	return &Client{
		config: config, url: charges, user: user, transport: newTransport(config),
		clock: tools.Clock, telemetry: observer,
	}, nil
}

// Close lets go of idle connections. Charges in flight are not touched.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Charge posts the request, with quick attempts while ctx's deadline leaves room for
// a whole one. Without a deadline it gives itself Attempts × Timeout. It sends
// nothing once ctx is done, and then returns what the attempts so far say; when
// there was none, the answer is Withheld.
func (c *Client) Charge(ctx context.Context, request domain.ChargeRequest) domain.Answer {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = c.clock.Now().Add(time.Duration(c.config.Attempts) * c.config.Timeout)
		bounded, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = bounded
	}

	body := payload(request)
	waits := c.backoff()
	answer := domain.Answer{Kind: domain.Withheld, Detail: "not sent: cancelled or no time left"}
	for nth := 1; ; nth++ {
		if ctx.Err() != nil || !c.hasRoom(nth, deadline) {
			return answer
		}
		latest := c.attempt(ctx, request, body, nth)
		answer = fold(answer, latest.Answer)
		if nth == c.config.Attempts || request.Once || !latest.quick() {
			return answer
		}
		pause := max(waits.NextBackOff(), latest.RetryAfter)
		if c.clock.Now().Add(pause+c.config.Timeout).After(deadline) || !sleep(ctx, pause) {
			return answer
		}
	}
}

// hasRoom reports whether an attempt may start. A further one needs room for the
// whole of it: cut short, it would only turn a clear answer into an unclear one. The
// first has to make do with what there is.
func (c *Client) hasRoom(nth int, deadline time.Time) bool {
	left := deadline.Sub(c.clock.Now())
	if nth == 1 {
		return left > 0
	}
	return left >= c.config.Timeout
}

// backoff returns the waits between the attempts of one Charge. The jitter keeps
// charges that failed together from coming back together.
func (c *Client) backoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: c.config.Backoff, RandomizationFactor: 0.5,
		Multiplier: 2, MaxInterval: 20 * c.config.Backoff,
	}
}

// sleep waits and reports whether the time passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
