package torture

import (
	"context"
	"time"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/postgres"
)

// providerFault is a way in which the provider fails for a while.
type providerFault struct {
	name    string
	rule    paymenttest.Rule
	latency paymenttest.Latency // where that is the fault
}

// faultRate is the share of the POSTs that fail while the provider does.
const faultRate = 0.4

func providerFaults() []providerFault {
	rule := func(action string) paymenttest.Rule { return paymenttest.Rule{Action: action, Rate: faultRate} }
	retry := rule("429")
	retry.RetryAfter = 1
	return []providerFault{
		{name: "reset-after", rule: rule("reset-after")},
		{name: "hang", rule: rule("hang")},
		{name: "503-after", rule: rule("503-after")},
		{name: "500", rule: rule("500")},
		{name: "429", rule: retry},
		{name: "cut", rule: rule("cut")},
		{name: "slow", latency: paymenttest.Latency{
			Kind: "uniform", Min: paymenttest.Duration(200 * time.Millisecond), Max: paymenttest.Duration(2 * time.Second),
		}},
	}
}

// failProvider has the provider fail for a while.
func (w *world) failProvider(ctx context.Context, f providerFault) error {
	faults := w.calm()
	if f.latency.Kind != "" {
		faults.Latency = f.latency
	} else {
		faults.Rules = append(faults.Rules, f.rule)
	}
	n := w.flight(ctx)
	before := w.provider.Ledger().Faults[f.rule.Action]
	end := w.record.open("provider")
	if err := w.provider.SetFaults(faults); err != nil {
		return err
	}
	pause(ctx, between(w.dice, time.Second, 2500*time.Millisecond))
	if err := w.provider.SetFaults(w.calm()); err != nil {
		return err
	}
	end(0)
	if f.rule.Action != "" {
		n = int(w.provider.Ledger().Faults[f.rule.Action] - before)
	}
	w.made(Hit{Kind: "provider", Point: f.name, InFlight: n})
	return nil
}

// disturb makes a fault of something that serves the victims.
func (w *world) disturb(ctx context.Context, kind, point string, do func(context.Context) error) error {
	n := w.flight(ctx)
	end := w.record.open(kind)
	err := do(ctx)
	end(0)
	w.made(Hit{Kind: kind, Point: point, InFlight: n})
	return err
}

func (w *world) restartPostgres(ctx context.Context) error {
	return w.disturb(ctx, "postgres restart", "", func(ctx context.Context) error {
		return w.postgres.Restart(ctx, postgres.Immediate)
	})
}

func (w *world) restartBroker(ctx context.Context) error {
	crash := w.dice.IntN(2) == 0
	kind := "broker restart"
	return w.disturb(ctx, kind, "", func(ctx context.Context) error { return w.brokers.restart(ctx, crash) })
}

func (w *world) cut(ctx context.Context, l *link) error {
	d := between(w.dice, 50*time.Millisecond, 1500*time.Millisecond)
	return w.disturb(ctx, "cut", l.proxy.Name, func(ctx context.Context) error { return l.cut(ctx, d) })
}

func (w *world) swallow(ctx context.Context, l *link) error {
	d := between(w.dice, 200*time.Millisecond, 2500*time.Millisecond)
	return w.disturb(ctx, "swallow", l.proxy.Name, func(ctx context.Context) error { return l.swallow(ctx, d) })
}

// halveRequests breaks connections to the provider after a few bytes: less than a
// request, or in the middle of one of the next.
func (w *world) halveRequests(ctx context.Context) error {
	bytes := int64(20 + w.dice.IntN(1500))
	d := between(w.dice, 200*time.Millisecond, time.Second)
	return w.disturb(ctx, "half request", "provider", func(ctx context.Context) error { return w.toProvider.halve(ctx, d, bytes) })
}
