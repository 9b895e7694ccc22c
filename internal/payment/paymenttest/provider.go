package paymenttest

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxHold bounds every latency and every hold of an answer.
	MaxHold = 10 * time.Minute

	defaultMaxKeys = 10_000_000
	maxBodyBytes   = 64 << 10
	maxKeyBytes    = 255
)

// Options set a provider up. The zero value is a provider that never fails.
type Options struct {
	// APIKey is the bearer token that charges and look-ups need; empty: none.
	APIKey string
	// Faults is the plan to start with.
	Faults Faults
	// MaxKeys bounds the memory of the ledger; 0 means 10 million.
	MaxKeys int
	// Watch, where it is not nil, is put around the provider that listens, to see
	// every request and its answer.
	Watch func(http.Handler) http.Handler
}

// Provider is the provider as an [http.Handler].
type Provider struct {
	routes  *http.ServeMux
	apiKey  string
	maxKeys int
	plan    atomic.Pointer[plan]
	book    atomic.Pointer[book]

	closeOnce sync.Once
	closing   chan struct{} // closed: every wait ends
}

// New returns a provider. The error joins every complaint about options.Faults.
func New(options Options) (*Provider, error) {
	p := &Provider{
		routes: http.NewServeMux(), apiKey: options.APIKey, maxKeys: options.MaxKeys,
		closing: make(chan struct{}),
	}
	if p.maxKeys <= 0 {
		p.maxKeys = defaultMaxKeys
	}
	if err := p.SetFaults(options.Faults); err != nil {
		return nil, err
	}
	p.Reset()

	p.routes.HandleFunc("POST /v1/charges", p.authorised(p.postCharge))
	p.routes.HandleFunc("GET /v1/charges", p.authorised(p.getCharge))
	p.routes.HandleFunc("GET /_ledger", p.getLedger)
	p.routes.HandleFunc("GET /_ledger/charges", p.getLedgerCharges)
	p.routes.HandleFunc("GET /_faults", p.getFaults)
	p.routes.HandleFunc("PUT /_faults", p.putFaults)
	p.routes.HandleFunc("POST /_reset", p.postReset)
	p.routes.HandleFunc("GET /healthz", getHealth)
	return p, nil
}

// ServeHTTP answers one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.routes.ServeHTTP(w, r) }

// SetFaults replaces the fault plan for the POSTs that arrive from now on. The
// error joins all complaints; the plan in force stays then.
func (p *Provider) SetFaults(faults Faults) error {
	compiled, err := compile(faults)
	if err != nil {
		return err
	}
	p.plan.Store(compiled)
	return nil
}

// Faults returns the plan in force. What "next" rules have used up is not shown.
func (p *Provider) Faults() Faults { return p.plan.Load().source }

// Reset forgets every key and count. A POST in progress is counted nowhere.
func (p *Provider) Reset() { p.book.Store(newBook(p.maxKeys)) }

// Close ends every wait for latency or hold; what was being charged is charged.
// The handler goes on answering, without waits.
func (p *Provider) Close() { p.closeOnce.Do(func() { close(p.closing) }) }

// wait passes time, or returns early when the provider is closed. It does not
// end when the client leaves: a charge that has begun is carried out.
func (p *Provider) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closing:
	}
}

// hold waits until the client leaves, the time is up or the provider is closed,
// and reports whether the client is still there.
func (p *Provider) hold(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	case <-p.closing:
		return true
	}
}

func (p *Provider) authorised(next http.HandlerFunc) http.HandlerFunc {
	if p.apiKey == "" {
		return next
	}
	want := "Bearer " + p.apiKey
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != want {
			if r.Method == http.MethodPost {
				p.book.Load().refuse()
			}
			writeError(w, http.StatusUnauthorized, "unauthorized")
			return
		}
		next(w, r)
	}
}
