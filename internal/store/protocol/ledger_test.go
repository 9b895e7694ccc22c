package protocol_test

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// ledger is a payment provider that keeps books: every POST and every capture,
// by key and by order. It captures unless an event's script says otherwise.
type ledger struct {
	mu          sync.Mutex
	ignoresKeys bool
	scripts     map[uuid.UUID][]step
	outcomes    map[uuid.UUID]domain.Answer // what the key is bound to
	requests    map[uuid.UUID]domain.ChargeRequest
	posts       map[uuid.UUID]int
	forbidden   map[uuid.UUID]int
	captures    map[uuid.UUID]int
	orders      map[int64]int // captures by order
	lookups     int
	finds       func(domain.Found) (domain.Found, error) // changes what a look-up tells; nil: nothing
}

func newLedger() *ledger {
	return &ledger{
		scripts: map[uuid.UUID][]step{}, outcomes: map[uuid.UUID]domain.Answer{},
		requests: map[uuid.UUID]domain.ChargeRequest{},
		posts:    map[uuid.UUID]int{}, forbidden: map[uuid.UUID]int{}, captures: map[uuid.UUID]int{}, orders: map[int64]int{},
	}
}

// Find implements [domain.Finder].
func (l *ledger) Find(_ context.Context, key uuid.UUID) (domain.Found, error) {
	l.mu.Lock()
	l.lookups++
	answer, known := l.outcomes[key]
	found, change := domain.Found{Known: known}, l.finds
	if known {
		found.OrderID, found.Amount = l.requests[key].OrderID, l.requests[key].Amount
		found.Status, found.ProviderChargeID, found.DeclineCode = domain.ChargeCaptured, answer.ProviderChargeID, answer.DeclineCode
		if answer.Kind == domain.Declined {
			found.Status = domain.ChargeDeclined
		}
	}
	l.mu.Unlock()
	if change == nil {
		return found, nil
	}
	return change(found)
}

// step answers one request for a charge.
type step func(ctx context.Context, l *ledger, r domain.ChargeRequest) domain.Answer

// script says how the next requests for an event are answered, in turn.
func (l *ledger) script(id uuid.UUID, steps ...step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scripts[id] = append(l.scripts[id], steps...)
}

// Charge implements [domain.Provider].
func (l *ledger) Charge(ctx context.Context, r domain.ChargeRequest) domain.Answer {
	if ctx.Err() != nil {
		return domain.Answer{Kind: domain.Withheld, Detail: "no time left"}
	}
	l.mu.Lock()
	answer := captures
	if script := l.scripts[r.EventID]; len(script) > 0 {
		answer, l.scripts[r.EventID] = script[0], script[1:]
	}
	l.mu.Unlock()
	return answer(ctx, l, r)
}

// captures takes the money, once per key for a provider that honours keys.
func captures(_ context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
	return l.decide(r, domain.Answer{Kind: domain.Captured, Status: 201, ProviderChargeID: "ch_" + r.EventID.String()})
}

// declines binds the key to a decline.
func declines(_ context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
	return l.decide(r, domain.Answer{Kind: domain.Declined, Status: 402, DeclineCode: "insufficient_funds"})
}

func (l *ledger) decide(r domain.ChargeRequest, a domain.Answer) domain.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posts[r.EventID]++
	if known, ok := l.outcomes[r.EventID]; ok && !l.ignoresKeys {
		return known
	}
	a.Posts = 1
	l.outcomes[r.EventID], l.requests[r.EventID] = a, r
	if a.Kind == domain.Captured {
		l.captures[r.EventID]++
		l.orders[r.OrderID]++
	}
	return a
}

// replies receives a POST, takes no money and answers.
func replies(a domain.Answer) step {
	a.Posts = 1
	return func(_ context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.posts[r.EventID]++
		answer := a // the step may be at work for several requests
		answer.Posts = 1
		return answer
	}
}

// The answers that take no money.
var (
	times     = replies(domain.Answer{Kind: domain.Unknown, MaybeSent: true, Detail: "timeout"})
	rejects   = replies(domain.Answer{Kind: domain.Rejected, Status: 400, Detail: "provider answered 400"})
	conflicts = replies(domain.Answer{Kind: domain.KeyConflict, Status: 422, MaybeSent: true, Detail: "provider answered 422"})
)

// forbids refuses us and not the charge, which is no attempt at it.
func forbids(_ context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forbidden[r.EventID]++
	return domain.Answer{Kind: domain.Misconfigured, Status: 401, Posts: 1, Detail: "provider answered 401"}
}

// refuses answers as a provider does that nobody listens for: surely not sent.
func refuses(context.Context, *ledger, domain.ChargeRequest) domain.Answer {
	return domain.Answer{Kind: domain.NotSent, Detail: "connection refused"}
}

// losing carries the step out, and loses the answer on the way back.
func losing(s step) step {
	return func(ctx context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
		return domain.Answer{Kind: domain.Unknown, MaybeSent: true, Posts: max(1, s(ctx, l, r).Posts), Detail: "reset"}
	}
}

// gateway holds requests back: arrived tells of each, and each takes one release.
type gateway struct{ arrived, release chan struct{} }

func newGateway() *gateway {
	return &gateway{arrived: make(chan struct{}, 64), release: make(chan struct{}, 64)}
}

// holding waits at the gateway, and then answers.
func (g *gateway) holding(s step) step {
	return func(ctx context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
		g.arrived <- struct{}{}
		select {
		case <-g.release:
		case <-time.After(patience):
		}
		return s(context.WithoutCancel(ctx), l, r)
	}
}

// then runs a hook once the step is carried out, before its answer is back.
func then(s step, hook func()) step {
	return func(ctx context.Context, l *ledger, r domain.ChargeRequest) domain.Answer {
		a := s(ctx, l, r)
		hook()
		return a
	}
}

func (l *ledger) postsOf(id uuid.UUID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.posts[id]
}

// forbiddens is how often we were refused, whatever the charge.
func (l *ledger) forbiddens() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.forbidden {
		n += times
	}
	return n
}

func (l *ledger) capturesOf(id uuid.UUID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.captures[id]
}

func (l *ledger) capturesOfOrder(order int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.orders[order]
}
