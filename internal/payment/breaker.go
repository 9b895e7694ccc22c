package payment

import (
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"example.com/billing/internal/domain"
)

const (
	// tripRate is which part of the recent charges has to fail.
	tripRate = 0.51
	// tripLeast is how many charges the window has to hold before it says anything.
	tripLeast = 10
	// tripWindow is over which time charges count as recent.
	tripWindow = 10 * time.Second
)

// Breaker trips when most of the recent charges end without a definite answer. It
// implements [domain.Breaker]. What happens then, and who tries the provider out, is
// the gate's matter: of the library only the window is used.
type Breaker struct {
	circuit circuitbreaker.CircuitBreaker[any] // closed or open; it is never asked for a permit, which would half-open it
}

// NewBreaker returns a breaker that has seen nothing.
func NewBreaker() *Breaker {
	return &Breaker{circuitbreaker.NewBuilder[any]().
		WithFailureRateThreshold(tripRate, tripLeast, tripWindow).
		Build()}
}

// Record implements [domain.Breaker]. What we withheld, and a refusal of us, say
// nothing; 429 is the limiter's matter, and 409 is the answer of a provider that is
// at work on the key.
func (b *Breaker) Record(a domain.Answer) (tripped bool) {
	if b.circuit.IsOpen() {
		return false
	}
	switch {
	case a.Kind.Definite():
		b.circuit.RecordSuccess()
	case a.Kind == domain.Withheld, a.Kind == domain.Misconfigured, a.Status == 409, a.Status == 429:
		return false
	default:
		b.circuit.RecordFailure()
	}
	return b.circuit.IsOpen()
}

// Reset implements [domain.Breaker].
func (b *Breaker) Reset() { b.circuit.Close() }
