package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/sandbox/orders"
	"example.com/billing/internal/sandbox/process"
)

// chargeLimit bounds one charge of the ceiling, as CHARGE_BUDGET does in billing.
const chargeLimit = 12 * time.Second

// CeilingOptions say which requests are sent.
type CeilingOptions struct {
	URL      string // of the provider
	Requests int
	Width    int // how many at a time
	Seed     uint64
}

// Ceiling is what the payment client does with nothing around it.
type Ceiling struct {
	Width    int `json:"width"`
	Requests int `json:"requests"`
	// Seconds from the answer by which every connection is made, the Width-th, to the last one.
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"charges_per_second"` // in that time
}

// MeasureCeiling charges orders with the payment client, so many at a time, and nothing else.
func MeasureCeiling(ctx context.Context, o CeilingOptions) (Ceiling, error) {
	if o.Width < 1 || o.Requests < 2*o.Width {
		return Ceiling{}, fmt.Errorf("ceiling: %d requests, %d at a time: want at least two for each", o.Requests, o.Width)
	}
	requests, err := requests(o)
	if err != nil {
		return Ceiling{}, err
	}
	client, err := payment.New(payment.Config{URL: o.URL, MaxInFlight: o.Width}, payment.Tools{})
	if err != nil {
		return Ceiling{}, err
	}
	defer client.Close()
	var (
		next, answered atomic.Int64
		warm           atomic.Pointer[time.Time]
		failed         atomic.Pointer[domain.Answer]
		all            sync.WaitGroup
	)
	for range o.Width {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(requests)) && failed.Load() == nil; i = next.Add(1) - 1 {
				if answer := charge(ctx, client, requests[i]); answer.Kind != domain.Captured {
					failed.Store(&answer)
				}
				if answered.Add(1) == int64(o.Width) {
					now := time.Now()
					warm.Store(&now)
				}
			}
		})
	}
	all.Wait()
	ended := time.Now()
	if answer := failed.Load(); answer != nil {
		return Ceiling{}, fmt.Errorf("ceiling: a charge was not captured: %s", answer.Detail)
	}
	seconds := ended.Sub(*warm.Load()).Seconds()
	return Ceiling{Width: o.Width, Requests: len(requests), Seconds: seconds, Rate: float64(len(requests)-o.Width) / seconds}, nil
}

func charge(ctx context.Context, client *payment.Client, request domain.ChargeRequest) domain.Answer {
	ctx, cancel := context.WithTimeout(ctx, chargeLimit)
	defer cancel()
	return client.Charge(ctx, request)
}

// requests are those that billing would make of the same kind of records.
func requests(o CeilingOptions) ([]domain.ChargeRequest, error) {
	plan, err := orders.Generate(o.Requests, orders.Options{Seed: o.Seed, Traced: true})
	if err != nil {
		return nil, err
	}
	all := make([]domain.ChargeRequest, 0, o.Requests)
	for r := range plan.Records() {
		record := domain.Record{Timestamp: time.Now(), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, domain.Header{Key: h.Key, Value: h.Value})
		}
		event, err := domain.Decoder{}.Decode(&record)
		if err != nil {
			return nil, fmt.Errorf("ceiling: %w", err)
		}
		all = append(all, event.Request())
	}
	return all, nil
}

// ceiling measures the client in a process of its own, at each width, and returns the best.
// requests is how many are sent.
func (w *World) ceiling(ctx context.Context, faults string, requests func(width int) int, widths ...int) (best Ceiling, err error) {
	for _, width := range widths {
		if err := w.provider.prepare(ctx, faults); err != nil {
			return best, err
		}
		bounded, cancel := context.WithTimeout(ctx, runLimit)
		out, err := process.Run(bounded, process.Spec{
			Path: w.options.Sandbox, Env: environ(w.options.Environ),
			Args: []string{
				"bench-ceiling", "--url", w.provider.url, "--requests", strconv.Itoa(requests(width)), "--width", strconv.Itoa(width),
				"--seed", strconv.Itoa(w.next()),
			},
		})
		cancel()
		if err != nil {
			return best, fmt.Errorf("ceiling: %w", err)
		}
		var c Ceiling
		if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &c); err != nil {
			return best, fmt.Errorf("ceiling: %w: %s", err, out)
		}
		if c.Rate > best.Rate {
			best = c
		}
	}
	return best, nil
}
