package run

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/orders"
)

// firstPoll is how soon the first charge is noticed.
const firstPoll = 10 * time.Millisecond

// progress tells how a run goes until its context ends.
type progress struct {
	console  *Console
	provider *paymenttest.Provider
	began    time.Time
	unique   int64 // what there is to charge; 0: no end
	sent     atomic.Int64
	kills    atomic.Int64
	rolls    atomic.Int64
}

// run shows progress until ctx ends.
func (p *progress) run(ctx context.Context) {
	tick := time.NewTicker(p.console.pause())
	defer tick.Stop()
	defer p.console.done()
	for {
		p.show()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *progress) show() {
	l := p.provider.Ledger()
	charged := l.CapturedKeys + l.Declined
	var b strings.Builder
	fmt.Fprintf(&b, "%.1f s  %s sent, %s charged", time.Since(p.began).Seconds(), number(p.sent.Load()), number(l.CapturedKeys))
	if l.Declined > 0 {
		fmt.Fprintf(&b, ", %s declined", number(l.Declined))
	}
	fmt.Fprintf(&b, ", %s repeated, %s charged twice", number(l.RepeatedPosts), number(l.DoubleCharges))
	if n := p.kills.Load(); n > 0 {
		fmt.Fprintf(&b, ", %d kills", n)
	}
	if n := p.rolls.Load(); n > 0 {
		fmt.Fprintf(&b, ", %d turns", n)
	}
	p.console.show(min(charged, max(p.unique, charged)), p.unique, b.String())
}

// first tells of the first charge as soon as the provider has captured it.
func (p *progress) first(ctx context.Context) {
	for p.provider.Ledger().Captures == 0 {
		if sleep(ctx, firstPoll) != nil {
			return
		}
	}
	for c := range p.provider.Charges() {
		if c.Status == "captured" {
			amount := orders.Amount{Minor: int64(c.Minor), Currency: c.Currency}
			p.console.Say("first charge after %.1f s: order %d, %s %s, Idempotency-Key %s",
				time.Since(p.began).Seconds(), c.OrderID, amount.Decimal(), c.Currency, c.Key)
			return
		}
	}
}
