package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// IntentState is where an unfinished charge stands.
type IntentState string

// The states of an intent. Calling, UnknownOutcome, Answered and Parked claim the
// order: no other event of it may be charged meanwhile.
const (
	// Waiting: surely not sent; due at DueAt.
	Waiting IntentState = "waiting"
	// Calling: under a lease; its owner may send until the lease ends.
	Calling IntentState = "calling"
	// UnknownOutcome: sent without a definite answer; may have been charged.
	UnknownOutcome IntentState = "unknown"
	// Answered: the definite answer is here, the claim is not yet.
	Answered IntentState = "answered"
	// Parked: dead letter that may have been charged; keeps the order claimed.
	Parked IntentState = "parked"
	// Held: dead letter that was surely not charged; leaves the order free.
	Held IntentState = "held"
)

// Dead reports whether the intent waits for an operator rather than for time.
func (s IntentState) Dead() bool { return s == Parked || s == Held }

// ClaimsOrder reports whether no other event of the order may be charged meanwhile.
func (s IntentState) ClaimsOrder() bool {
	return s == Calling || s == UnknownOutcome || s == Answered || s == Parked
}

// Intent is the durable evidence of an unfinished charge: that it may have
// happened, since when, and who may act on it. It is committed before the call
// and outlives the process that made it.
type Intent struct {
	EventID     uuid.UUID
	OrderID     int64
	RequestHash [32]byte // of the charge request; a later call must hash alike
	Fingerprint Fingerprint

	State     IntentState
	Claimed   bool // a committed transaction holds the event in processed_event
	MaybeSent bool // some attempt was left without a definite answer; never cleared

	Token      uuid.UUID // fresh for every lease; every later write compares it
	Owner      string    // who holds the lease, for people
	LeaseUntil time.Time // zero when there is no lease
	DueAt      time.Time

	CreatedAt      time.Time
	FirstAttemptAt time.Time // zero until something may have been sent
	ReplayedAt     time.Time // when an operator last sent it round again; zero if never
	// Attempts is an upper bound on the requests sent: a lease reserves its quick
	// attempts before the first one and gives back what it did not use.
	Attempts  int
	Answer    *Answer // the definite answer in state Answered
	LastError string  // at most 200 bytes

	Was Version // the row as it was read; zero where there is none yet

	Group       string
	Record      Record // what is charged is always this record
	TraceParent string
	TraceState  string
}

// Version is what a later write compares a row with: another lease, state or
// claim means that somebody else has acted on it.
type Version struct {
	Token   uuid.UUID
	State   IntentState
	Claimed bool
}

// Stored reports whether a row of the intent exists.
func (i *Intent) Stored() bool { return i.Was.State != "" }

// read marks the intent as the row that now stands in the store.
func (i *Intent) read() { i.Was = Version{Token: i.Token, State: i.State, Claimed: i.Claimed} }

// newIntent returns the intent of a fresh event, not yet leased.
func newIntent(e *Event, r *Record, group string, now time.Time) Intent {
	request := e.Request()
	return Intent{
		EventID: e.ID, OrderID: e.OrderID, RequestHash: request.Hash(), Fingerprint: e.Fingerprint(),
		State: Waiting, DueAt: now, CreatedAt: now, Group: group, Record: *r,
		TraceParent: e.TraceParent, TraceState: e.TraceState,
	}
}

// lease puts the intent under a fresh lease of owner, from now on. The attempts
// it may make are counted before the first one is sent.
func (i *Intent) lease(p *Policy, now time.Time) {
	if i.State == Calling || i.State == UnknownOutcome {
		i.MaybeSent = true // whoever had it may have sent
	}
	i.State = Calling
	i.Token = uuid.New()
	i.Owner = p.Owner
	i.LeaseUntil = now.Add(p.Lease)
	i.DueAt = i.LeaseUntil
	i.Attempts += p.QuickAttempts
	if i.FirstAttemptAt.IsZero() {
		i.FirstAttemptAt = now
	}
}

// ownedBy reports whether token is that of the intent's present lease or answer.
func (i *Intent) ownedBy(token uuid.UUID) bool {
	return i != nil && (i.State == Calling || i.State == Answered) && i.Token == token
}

// since is the instant from which the retry horizon is measured: the latest
// replay, else the first attempt, or the claim when nothing was ever sent.
func (i *Intent) since() time.Time {
	if !i.ReplayedAt.IsZero() {
		return i.ReplayedAt
	}
	if i.FirstAttemptAt.IsZero() {
		return i.CreatedAt
	}
	return i.FirstAttemptAt
}

// Hash digests what the provider is asked for, apart from the key. A deploy
// that would send other bytes for the same event is found out by it.
func (r *ChargeRequest) Hash() [32]byte {
	b := make([]byte, 0, 64)
	b = append(b, 1) // version of this encoding
	b = binary.BigEndian.AppendUint64(b, uint64(r.OrderID))
	b = binary.BigEndian.AppendUint64(b, r.Amount.Minor())
	b = append(b, r.Amount.Currency().Code()...)
	return sha256.Sum256(b)
}
