package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"example.com/billing/internal/payment/paymenttest"
)

// Meter is what the provider's door has seen since it was set to zero.
type Meter struct {
	Posts    int64 `json:"posts"`    // requests that arrived
	Answered int64 `json:"answered"` // requests that were answered
	First    int64 `json:"first"`    // unix time of the first arrival, in ns
	Last     int64 `json:"last"`     // unix time of the latest answer, in ns
	Most     int64 `json:"most"`     // most requests at one time
	Busy     int64 `json:"busy"`     // sum of the times that requests took, in ns
}

// Mean is how many requests there were at a time, on average between the first arrival and the last answer.
func (m Meter) Mean() float64 {
	if m.Last <= m.First {
		return 0
	}
	return float64(m.Busy) / float64(m.Last-m.First)
}

// door counts what goes through it. Its figures are exact; it costs some atomics a request.
type door struct {
	next                       http.Handler
	posts, answered, now, most atomic.Int64
	first, last, busy          atomic.Int64
}

// ServeHTTP counts charges and passes everything on.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/_meter" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d.read())
	case r.URL.Path == "/_meter" && r.Method == http.MethodDelete:
		d.zero()
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/charges":
		d.count(w, r)
	default:
		d.next.ServeHTTP(w, r)
	}
}

func (d *door) count(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	d.posts.Add(1)
	d.first.CompareAndSwap(0, began.UnixNano())
	raise(&d.most, d.now.Add(1))
	defer func() {
		ended := time.Now()
		d.busy.Add(int64(ended.Sub(began)))
		raise(&d.last, ended.UnixNano())
		d.now.Add(-1)
		d.answered.Add(1)
	}()
	d.next.ServeHTTP(w, r)
}

// raise makes a figure at least n.
func raise(figure *atomic.Int64, n int64) {
	for {
		old := figure.Load()
		if n <= old || figure.CompareAndSwap(old, n) {
			return
		}
	}
}

func (d *door) read() Meter {
	return Meter{
		Posts: d.posts.Load(), Answered: d.answered.Load(), First: d.first.Load(), Last: d.last.Load(),
		Most: d.most.Load(), Busy: d.busy.Load(),
	}
}

// zero is called while nothing is under way.
func (d *door) zero() {
	for _, figure := range []*atomic.Int64{&d.posts, &d.answered, &d.first, &d.last, &d.most, &d.busy} {
		figure.Store(0)
	}
}

// ServeProvider serves a provider behind a door on a free port of 127.0.0.1 until ctx ends, and tells its address.
func ServeProvider(ctx context.Context, ready func(url string)) error {
	provider, err := paymenttest.New(paymenttest.Options{})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	server := &http.Server{Handler: &door{next: provider}, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ready("http://" + listener.Addr().String())
	select {
	case err := <-served:
		return fmt.Errorf("provider: serve: %w", err)
	case <-ctx.Done():
	}
	provider.Close()
	_ = server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("provider: serve: %w", err)
	}
	return nil
}
