package paymenttest

import (
	"math/big"
	"sync"
)

// book is the ledger: every key ever seen, and the sums over them, kept up to date
// with each step so that reading them is cheap. One mutex guards it all; a step
// holds it for less than a microsecond.
type book struct {
	maxKeys int

	mu      sync.Mutex
	keys    map[string]*entry
	arrived []*entry // in order of arrival, for listing
	orders  map[int64]int
	sums    Ledger
	minor   map[string]*big.Int
	lastID  uint64
}

type status uint8

const (
	open status = iota // no charge of the key was ever finished
	captured
	declined
)

// entry is what is remembered of one key. Guarded by the book's mutex.
type entry struct {
	key         string
	payload     payload // zero until a well-formed POST came
	declineCode string
	id          uint64 // of the latest capture or decline
	posts       int
	captures    int
	busy        int
	status      status
}

func newBook(maxKeys int) *book {
	return &book{
		maxKeys: maxKeys,
		keys:    make(map[string]*entry), orders: make(map[int64]int), minor: make(map[string]*big.Int),
		sums: Ledger{
			PostsPerKey: map[int]int64{}, CapturesPerKey: map[int]int64{}, CapturesPerOrder: map[int]int64{},
			Faults: map[string]int64{},
		},
	}
}

// refuse counts a POST that never became the business of a key.
func (b *book) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums.Posts++
	b.sums.Refused++
}

// arrive counts a POST of a key and returns the key's entry and how many POSTs it
// has had, this one included. It returns nil when the ledger is full.
func (b *book) arrive(key string) (*entry, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums.Posts++
	e := b.keys[key]
	if e == nil {
		if len(b.keys) >= b.maxKeys {
			b.sums.Refused++
			return nil, 0
		}
		e = &entry{key: key}
		b.keys[key] = e
		b.arrived = append(b.arrived, e)
		b.sums.Keys++
	} else {
		b.sums.RepeatedPosts++
	}
	e.posts++
	move(b.sums.PostsPerKey, e.posts)
	return e, e.posts
}

// malformed counts a POST whose body made no sense.
func (b *book) malformed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums.Refused++
}

// bind ties the key to the payload it is first seen with and reports whether p is
// that payload.
func (b *book) bind(e *entry, p payload) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.payload == (payload{}) {
		e.payload = p
	}
	return e.payload == p
}

// played counts a fault.
func (b *book) played(action string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums.Faults[action]++
}

// verdict is what a key's state says about a POST of it.
type verdict uint8

const (
	fresh verdict = iota // go on: the key is now in progress
	settled
	inProgress
	otherPayload
)

// begin puts the key in progress, unless its state already answers the POST.
func (b *book) begin(e *entry, samePayload, ignoreKeys bool) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ignoreKeys:
	case !samePayload:
		b.sums.KeyConflicts++
		return otherPayload
	case e.status != open:
		b.sums.Replayed++
		return settled
	case e.busy > 0:
		b.sums.KeyInProgress++
		return inProgress
	}
	e.busy++
	b.sums.InProgress++
	return fresh
}

// capture takes the money and ends the progress of the key.
func (b *book) capture(e *entry, p payload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(e)
	e.status = captured
	e.captures++
	b.orders[p.orderID]++
	move(b.sums.CapturesPerKey, e.captures)
	move(b.sums.CapturesPerOrder, b.orders[p.orderID])
	b.sums.Captures++
	if e.captures > 1 || b.orders[p.orderID] > 1 {
		b.sums.DoubleCharges++
	}
	total := b.minor[p.amount.Currency().Code()]
	if total == nil {
		total = new(big.Int)
		b.minor[p.amount.Currency().Code()] = total
	}
	total.Add(total, new(big.Int).SetUint64(p.amount.Minor()))
}

// decline refuses the money for good and ends the progress of the key.
func (b *book) decline(e *entry, code string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(e)
	if e.status != declined {
		b.sums.Declined++
	}
	e.status = declined
	e.declineCode = code
}

// end is the common part of capture and decline.
func (b *book) end(e *entry) {
	e.busy--
	b.sums.InProgress--
	b.lastID++
	e.id = b.lastID
}

// look returns a copy of the entry as it is now.
func (b *book) look(e *entry) entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *e
}

// find returns a copy of a key's entry.
func (b *book) find(key string) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.keys[key]; e != nil {
		return *e, true
	}
	return entry{}, false
}

// page copies the entries from position from on, at most cap(buf) of them.
func (b *book) page(from int, buf []entry) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	buf = buf[:0]
	for i := from; i < len(b.arrived) && len(buf) < cap(buf); i++ {
		buf = append(buf, *b.arrived[i])
	}
	return buf
}

// move counts one member of a histogram up from n-1 to n.
func move(histogram map[int]int64, n int) {
	if n > 1 {
		if histogram[n-1]--; histogram[n-1] == 0 {
			delete(histogram, n-1)
		}
	}
	histogram[n]++
}
