package domain

import (
	"math/rand/v2"
	"time"
)

// Policy holds the bounds that the protocol works within. The app derives it
// from the configuration and proves the inequalities between them.
type Policy struct {
	Group string // consumer group: whose claims and counters
	Owner string // name of this process, for people who read a lease

	ChargeBudget  time.Duration // quick attempts of one charge
	CommitMargin  time.Duration // from the last answer to the end of the commit
	LockTimeout   time.Duration // longest wait of a claim for a twin
	Lease         time.Duration // > ChargeBudget + CommitMargin; what it has more may pass between lease and call
	QuickAttempts int           // most requests of one lease
	// SoftDeadline is the least time that a batch waits for its last answers before
	// it commits without them; slower providers get more. 0: it waits for all.
	SoftDeadline time.Duration
	MaxInFlight  int     // charges in flight in this process
	Limiter      Limiter // adapts how many of them there are; nil: always MaxInFlight
	Breaker      Breaker // tells when the provider fails as a whole; nil: nothing does
	Faults       Faults  // told where the flow stands, by tests; nil: nobody

	RetryHorizon time.Duration // how long a charge is retried before it is parked
	KeyTTL       time.Duration // how long the provider remembers a key
	Finder       Finder        // looks up what an older key was used for; nil: such an intent is parked
	// DedupRetention is how long processed events are remembered: an older one that
	// nothing is known of is parked. 0: none is too old.
	DedupRetention time.Duration

	PublishEvents  bool // append an outcome event when a charge is captured or declined
	PublishLetters bool // append a dead letter's record when it is new or open again
}

// Bounds of the pauses between tries of one intent.
const (
	minRetryPause = time.Second
	maxRetryPause = 10 * time.Minute
	minOrderPoll  = 250 * time.Millisecond
	maxOrderPoll  = 10 * time.Second
	probePause    = time.Second
	probeTurn     = 5 * time.Second // before the same intent is a probe again
	maxRetryAfter = time.Hour
)

// pause says how long to wait before the next try of something that has been
// tried for elapsed: as long again, so that the pauses double, less a jitter of
// up to a quarter, so that what failed together does not come back together.
func pause(elapsed, least, most time.Duration) time.Duration {
	d := min(max(elapsed, least), most)
	return d - rand.N(d/4+1) //nolint:gosec // jitter, not a secret
}

// expired reports whether the intent has been retried for long enough.
func (p *Policy) expired(in *Intent, now time.Time) bool {
	return !now.Before(in.since().Add(p.RetryHorizon))
}

// keyTooOld reports whether the provider may have forgotten the intent's key by
// the time that a lease taken now would still be sending.
func (p *Policy) keyTooOld(in *Intent, now time.Time) bool {
	return in.MaybeSent && !now.Add(p.Lease).Before(in.FirstAttemptAt.Add(p.KeyTTL))
}

// budget is how long the holder of a lease may send: a charge budget, and never
// so long that the last answer could not be recorded under the lease. Whoever
// takes the intent over must not meet a sender.
func (p *Policy) budget(in *Intent, now time.Time) time.Duration {
	return min(p.ChargeBudget, in.LeaseUntil.Sub(now)-p.CommitMargin)
}

// transactionBound is the longest that the main transaction of a batch may last.
func (p *Policy) transactionBound() time.Duration {
	return p.LockTimeout + p.ChargeBudget + p.CommitMargin
}
