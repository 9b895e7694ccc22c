package payment

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Config of the client. A field that is zero has its default.
type Config struct {
	// URL of the provider, http or https, perhaps with a path to start from. User
	// and password in it are sent as basic authentication. Required.
	URL string
	// APIKey is sent as a bearer token; empty: not sent.
	APIKey string
	// Timeout of one attempt, from the wait for a connection to the last byte of
	// the answer. Default 5 s, at most 5 min.
	Timeout time.Duration
	// MaxInFlight bounds the connections, and so the charges at one time. Those
	// above it wait within their Timeout. Default 1024.
	MaxInFlight int
	// Attempts of one Charge, the first included. Default 3, at most 10.
	Attempts int
	// Backoff is the mean wait before the second attempt; each further wait is
	// twice as long, at most 20 times the first. Default 100 ms.
	Backoff time.Duration
	// IdleTimeout is how long an unused connection is kept. A provider that closes
	// it first makes a charge unknown that runs into the closing, so it is below the
	// shortest keep-alive in common use (5 s). Default 4 s.
	IdleTimeout time.Duration
}

const (
	maxTimeout     = 5 * time.Minute
	maxInFlightCap = 1 << 16
	maxAttempts    = 10
	maxBackoff     = time.Minute
)

func (c Config) withDefaults() Config {
	fill(&c.Timeout, 5*time.Second)
	fill(&c.MaxInFlight, 1024)
	fill(&c.Attempts, 3)
	fill(&c.Backoff, 100*time.Millisecond)
	fill(&c.IdleTimeout, 4*time.Second)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate joins all complaints; those about what an operator sets name its
// variable. None of them shows the URL or the key.
func (c Config) Validate() error {
	c = c.withDefaults()
	complaints := []error{
		c.validateURL(),
		within("PAYMENT_TIMEOUT", c.Timeout, time.Millisecond, maxTimeout),
		within("MAX_IN_FLIGHT", c.MaxInFlight, 1, maxInFlightCap),
		within("attempts", c.Attempts, 1, maxAttempts),
		within("backoff", c.Backoff, time.Microsecond, maxBackoff),
		within("idle timeout", c.IdleTimeout, time.Millisecond, maxTimeout),
	}
	if !httpguts.ValidHeaderFieldValue(c.APIKey) {
		complaints = append(complaints, errors.New("PAYMENT_API_KEY: holds a character that a header cannot carry, such as a line feed"))
	}
	if err := errors.Join(complaints...); err != nil {
		return fmt.Errorf("payment: %w", err)
	}
	return nil
}

func (c Config) validateURL() error {
	if c.URL == "" {
		return errors.New("PAYMENT_URL: missing")
	}
	parsed, err := url.Parse(c.URL)
	switch {
	case err != nil: // its text holds the URL, and that may hold a password
		return errors.New("PAYMENT_URL: not a URL")
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("PAYMENT_URL: must start with http:// or https://")
	case parsed.Hostname() == "":
		return errors.New("PAYMENT_URL: has no host")
	case parsed.RawQuery != "" || parsed.Fragment != "":
		return errors.New("PAYMENT_URL: must have neither query nor fragment")
	case parsed.User != nil && c.APIKey != "":
		return errors.New("PAYMENT_URL: user and password exclude PAYMENT_API_KEY; only one of them can be sent")
	}
	return nil
}

func within[T time.Duration | int](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s %v: want %v to %v", name, value, low, high)
	}
	return nil
}
