package app

import (
	"fmt"
	"strconv"
	"time"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
)

// Bounds that follow from the protocol rather than from a choice.
const (
	quickAttempts   = 3                      // requests of one charge within its budget
	softDeadline    = 100 * time.Millisecond // a batch waits at least so long for its last answers
	commitMargin    = 3 * time.Second        // from the last answer to the end of the commit
	sideLockTimeout = 500 * time.Millisecond // whoever holds an intent longer is in the middle of something
	sideTimeout     = 5 * time.Second        // a side transaction, and a statement of it
	pollMargin      = 10 * time.Second       // for a commit and a poll around a drain
)

// lease is how long an intent belongs to its owner: a whole budget, one attempt
// that was started at its end, and the commit.
func (s *Settings) lease() time.Duration {
	return s.Flow.ChargeBudget + s.Payment.Timeout + commitMargin
}

// lockTimeout is how long a claim waits for a twin that is being charged.
func (s *Settings) lockTimeout() time.Duration { return s.Flow.ChargeBudget + 2*commitMargin }

// idleInTransaction is when the database gives up on a transaction whose charges
// do not come back.
func (s *Settings) idleInTransaction() time.Duration { return s.Flow.ChargeBudget + 2*commitMargin }

// drain is how long a batch that has begun may take to end.
func (s *Settings) drain() time.Duration { return s.Flow.ChargeBudget + commitMargin }

// maxPollInterval is how long the poll loop may be away before the group gives
// our partitions away. The loop only polls, and drains when partitions are
// revoked; so it is short on purpose: it is also for how long a group may wait
// for a member that died in the middle of a rebalance.
func (s *Settings) maxPollInterval() time.Duration {
	return 2*s.drain() + s.Kafka.SessionTimeout + pollMargin
}

// policy returns the bounds that the domain works within.
func (s *Settings) policy(owner string) domain.Policy {
	return domain.Policy{
		Group: s.Kafka.GroupID, Owner: owner,
		ChargeBudget: s.Flow.ChargeBudget, CommitMargin: commitMargin, LockTimeout: s.lockTimeout(), Lease: s.lease(),
		QuickAttempts: quickAttempts, MaxInFlight: s.Flow.MaxInFlight, SoftDeadline: softDeadline,
		PublishEvents: s.Kafka.EventsTopic != "", PublishLetters: s.Kafka.DLQTopic != "",
		RetryHorizon: s.Flow.RetryHorizon, KeyTTL: s.Payment.KeyTTL, DedupRetention: s.Flow.DedupRetention,
	}
}

// Inequality is a relation between settings that the guarantees rest on.
type Inequality struct {
	Left      string // what must be smaller
	Right     string // than what
	LeftIs    time.Duration
	RightIs   time.Duration
	OrEqual   bool
	IsCount   bool // the figures are numbers, not durations
	Waived    bool // need not be true: something else sees to the guarantee
	Guarantee string
}

// Holds reports whether the relation is true, or need not be.
func (i Inequality) Holds() bool {
	return i.Waived || i.LeftIs < i.RightIs || i.OrEqual && i.LeftIs == i.RightIs
}

func (i Inequality) sign() string {
	if i.OrEqual {
		return "<="
	}
	return "<"
}

// figures returns both sides as people write them.
func (i Inequality) figures() (left, right string) {
	if i.IsCount {
		return strconv.FormatInt(int64(i.LeftIs), 10), strconv.FormatInt(int64(i.RightIs), 10)
	}
	return i.LeftIs.String(), i.RightIs.String()
}

// String states the relation with its figures.
func (i Inequality) String() string {
	l, r := i.figures()
	verdict := "holds"
	switch {
	case i.Waived:
		verdict = "need not hold"
	case !i.Holds():
		verdict = "is violated"
	}
	return fmt.Sprintf("%s (%s) %s %s (%s) %s: %s", i.Left, l, i.sign(), i.Right, r, verdict, i.Guarantee)
}

// Inequalities returns the relations between the settings, with their figures.
// All of them must hold before anything starts.
func (s *Settings) Inequalities() []Inequality {
	budget := s.Flow.ChargeBudget + commitMargin
	const charge = "CHARGE_BUDGET + commit margin"
	return []Inequality{
		{Left: "PAYMENT_TIMEOUT", LeftIs: s.Payment.Timeout, Right: "CHARGE_BUDGET", RightIs: s.Flow.ChargeBudget, OrEqual: true, Guarantee: "one whole attempt fits into a charge"},
		{Left: charge, LeftIs: budget, Right: "lease", RightIs: s.lease(), Guarantee: "nobody takes an intent over while its owner may still send"},
		{Left: charge, LeftIs: budget, Right: "idle-in-transaction timeout", RightIs: s.idleInTransaction(), Guarantee: "the database does not end a batch that waits for answers"},
		{Left: charge, LeftIs: budget, Right: "SHUTDOWN_TIMEOUT", RightIs: s.ShutdownTimeout, Guarantee: "a charge in flight is recorded before the process ends"},
		{Left: charge, LeftIs: budget, Right: "max.poll.interval.ms", RightIs: s.maxPollInterval(), Guarantee: "a batch that drains does not cost the membership"},
		{Left: "CHARGE_BUDGET", LeftIs: s.Flow.ChargeBudget, Right: "lock timeout", RightIs: s.lockTimeout(), Guarantee: "a twin waits for the outcome instead of giving up"},
		{Left: "RETRY_HORIZON", LeftIs: s.Flow.RetryHorizon, Right: "PAYMENT_KEY_TTL", RightIs: s.Payment.KeyTTL, Waived: s.Payment.Lookup, Guarantee: "a key is not sent after the provider forgot it"},
		{Left: "RETRY_HORIZON", LeftIs: s.Flow.RetryHorizon, Right: "DEDUP_RETENTION", RightIs: s.Flow.DedupRetention, Guarantee: "an event is remembered for as long as it is retried"},
		{
			Left: "MAX_TRANSACTIONS + side pool + relay + retention + admin", LeftIs: time.Duration(s.Flow.MaxTransactions + store.SideConns + store.RelayConns + store.RetentionConns + store.ArchiveConns),
			Right: "DATABASE_MAX_CONNS", RightIs: time.Duration(s.Database.MaxConns), OrEqual: true, IsCount: true,
			Guarantee: "no part waits for another's connection",
		},
	}
}
