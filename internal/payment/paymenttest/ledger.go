package paymenttest

import (
	"fmt"
	"iter"
	"maps"
)

// Ledger is what the provider has seen and done since it started or was reset.
// Every figure is exact.
type Ledger struct {
	// Posts counts every POST /v1/charges that was read, whatever its answer.
	Posts int64 `json:"posts"`
	// Keys counts the different idempotency keys among them.
	Keys int64 `json:"keys"`
	// RepeatedPosts counts the POSTs of a key beyond its first.
	RepeatedPosts int64 `json:"repeatedPosts"`
	// Captures counts how often money was taken.
	Captures int64 `json:"captures"`
	// DoubleCharges counts the captures of a key or of an order beyond its first.
	DoubleCharges int64 `json:"doubleCharges"`
	// CapturedKeys and CapturedOrders count what was captured at least once.
	CapturedKeys   int64 `json:"capturedKeys"`
	CapturedOrders int64 `json:"capturedOrders"`
	// Declined counts the keys that were declined.
	Declined int64 `json:"declined"`
	// Replayed counts the POSTs that found their key settled.
	Replayed int64 `json:"replayed"`
	// KeyConflicts and KeyInProgress count the honest 422s and 409s.
	KeyConflicts  int64 `json:"keyConflicts"`
	KeyInProgress int64 `json:"keyInProgress"`
	// Refused counts the POSTs without a usable key, token or body, and those
	// that came when the ledger was full.
	Refused int64 `json:"refused"`
	// InProgress is the number of charges begun and not finished, now.
	InProgress int64 `json:"inProgress"`
	// PostsPerKey tells how many keys had 1, 2, … POSTs; CapturesPerKey and
	// CapturesPerOrder likewise, of those captured at all.
	PostsPerKey      map[int]int64 `json:"postsPerKey"`
	CapturesPerKey   map[int]int64 `json:"capturesPerKey"`
	CapturesPerOrder map[int]int64 `json:"capturesPerOrder"`
	// CapturedMinor is the captured total by currency in minor units, as a
	// decimal string: it may be larger than any integer type.
	CapturedMinor map[string]string `json:"capturedMinor"`
	// Faults counts the faults that were played, by action.
	Faults map[string]int64 `json:"faults"`
}

// Charge is what the provider knows about one key.
type Charge struct {
	Key string `json:"key"`
	// ID is empty while Status is "open".
	ID string `json:"id"`
	// Status is "open" (nothing was ever finished), "captured" or "declined".
	Status string `json:"status"`
	// OrderID, Amount (with the currency's decimals) and Currency are empty when
	// no POST of the key had a well-formed body.
	OrderID     int64  `json:"orderId"`
	Amount      string `json:"amount"`
	Minor       uint64 `json:"minor,string"`
	Currency    string `json:"currency"`
	DeclineCode string `json:"declineCode,omitempty"`
	Posts       int    `json:"posts"`
	Captures    int    `json:"captures"`
}

// Ledger returns the sums as they are now.
func (p *Provider) Ledger() Ledger {
	b := p.book.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	sums := b.sums
	sums.PostsPerKey = maps.Clone(b.sums.PostsPerKey)
	sums.CapturesPerKey = maps.Clone(b.sums.CapturesPerKey)
	sums.CapturesPerOrder = maps.Clone(b.sums.CapturesPerOrder)
	sums.Faults = maps.Clone(b.sums.Faults)
	sums.CapturedMinor = make(map[string]string, len(b.minor))
	for code, total := range b.minor {
		sums.CapturedMinor[code] = total.String()
	}
	sums.CapturedOrders = int64(len(b.orders))
	for _, n := range b.sums.CapturesPerKey {
		sums.CapturedKeys += n
	}
	return sums
}

// Charge returns what is known about one key.
func (p *Provider) Charge(key string) (Charge, bool) {
	e, ok := p.book.Load().find(key)
	return e.charge(), ok
}

// Charges goes through all keys in order of arrival. It does not stop the
// provider: each is shown as it is when its turn comes.
func (p *Provider) Charges() iter.Seq[Charge] {
	b := p.book.Load()
	return func(yield func(Charge) bool) {
		const pageSize = 512
		page := make([]entry, 0, pageSize)
		for from := 0; ; from += len(page) {
			page = b.page(from, page)
			if len(page) == 0 {
				return
			}
			for i := range page {
				if !yield(page[i].charge()) {
					return
				}
			}
		}
	}
}

func (e *entry) charge() Charge {
	c := Charge{
		Key: e.key, Status: e.status.String(), DeclineCode: e.declineCode,
		OrderID: e.payload.orderID, Minor: e.payload.amount.Minor(), Currency: e.payload.amount.Currency().Code(),
		Posts: e.posts, Captures: e.captures,
	}
	if c.OrderID != 0 {
		c.Amount = e.payload.amount.Decimal()
	}
	if e.status != open {
		c.ID = chargeID(e.id)
	}
	return c
}

func (s status) String() string {
	switch s {
	case captured:
		return "captured"
	case declined:
		return "declined"
	case open:
	}
	return "open"
}

func chargeID(n uint64) string { return fmt.Sprintf("ch_%016d", n) }
