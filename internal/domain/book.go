package domain

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Errors that a Book returns and the use case acts on. Every other error means:
// nothing was written, or nobody knows (an ambiguous commit); run it again.
var (
	// ErrData: the database refuses a value (SQLSTATE class 22). Run again it fails again.
	ErrData = errors.New("the database refuses a value")
	// ErrMoved: a row that the decision rested on was changed by somebody else. Look again.
	ErrMoved = errors.New("the book changed meanwhile")
	// ErrOrderTaken: another intent claims the order.
	ErrOrderTaken = errors.New("the order is claimed by another intent")
)

// Book is the store.
//
// Row locks are taken in one order everywhere, so that two transactions never
// wait for each other: processed_event by event id, intents by (order id, event
// id), charges by event id, statistics by key, dead letters, positions. Messages
// are only ever inserted, like the log of duplicates, and nobody waits for them. A transaction that has written
// an intent or a charge uses no other connection.
type Book interface {
	// Transact runs fn in one READ COMMITTED transaction on the main pool. It
	// commits when fn returns nil and rolls back otherwise, on panic too. An
	// error from the commit itself may mean either.
	Transact(ctx context.Context, fn func(Tx) error) error
	// Aside is Transact on the small side pool, with a short lock timeout.
	Aside(ctx context.Context, fn func(Tx) error) error
	// Open commits new intents on the side pool, by (order id, event id), and
	// returns those that were new: an intent of the same event or a claim on the
	// same order keeps one out without an error, and so does a lock timeout.
	Open(ctx context.Context, intents []Intent) (map[uuid.UUID]bool, error)
}

// Tx is one open transaction.
type Tx interface {
	Claims
	// Look reads, in a statement of its own, what is final and what is open.
	Look(ctx context.Context, subjects []Subject) (Facts, error)
	// Final is Look without the intents.
	Final(ctx context.Context, subjects []Subject) (Facts, error)
	// Lock locks the intents of the events and returns those that exist.
	Lock(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*Intent, error)
	// Due locks the longest due intent that is claimed and not dead, passing over
	// those that others have locked; nil when there is none. Whose group claimed it
	// does not matter: to every other one the event is a duplicate, so that what a
	// group left behind when it went would be finished by nobody.
	Due(ctx context.Context, now time.Time) (*Intent, error)
	// Stray locks an intent that nobody claims, whose lease has ended and whose event is
	// final, passing over those that others have locked; nil when there is none.
	Stray(ctx context.Context, now time.Time) (*Intent, error)
	// Write locks the intents to be changed, writes them and the charges. ErrMoved:
	// a new row was there already, or an old one is not as it was read.
	// ErrOrderTaken: an intent may not claim its order.
	Write(ctx context.Context, w Writes) error
	// Publish appends messages, to be published once the transaction has committed.
	Publish(ctx context.Context, messages []Message) error
	// Count adds to the statistics.
	Count(ctx context.Context, stats Stats) error
	// Log appends to the log of duplicates, in their order.
	Log(ctx context.Context, duplicates []Duplicate) error
	// Park writes dead letters and returns the coordinates of those that were not
	// there before.
	Park(ctx context.Context, letters []Letter) (map[Coordinates]bool, error)
	// Resolve closes the open letters of events whose charge became final.
	Resolve(ctx context.Context, ids []uuid.UUID, now time.Time) error
	// Letter returns a dead letter with its bytes; false when there is none.
	Letter(ctx context.Context, id int64) (Letter, bool, error)
	// Turn gives a letter another state, reason, detail and event, and notes who
	// did so and why. ErrMoved: it is not as it was read.
	Turn(ctx context.Context, was, now Letter, action Action) error
	// Move writes a partition's position, which never goes back by it. ErrFenced: its
	// epoch is not the partition's any more.
	Move(ctx context.Context, at Position) error
}

// Claims are the rows of processed_event.
type Claims interface {
	// Claim inserts a row for each sighting, which are of distinct events in the
	// order of their ids, and waits for other transactions that hold one of them.
	Claim(ctx context.Context, group string, sightings []Sighting) (Claimed, error)
	// Unclaim takes back rows that this very transaction inserted.
	Unclaim(ctx context.Context, group string, ids []uuid.UUID) error
}

// Sighting is where an event was first seen, and what it meant.
type Sighting struct {
	EventID     uuid.UUID
	Source      Coordinates
	Fingerprint Fingerprint
	// SeenAt is when it was claimed, by the database's clock; zero where nobody knows:
	// it is not claimed yet, or processed_event has forgotten it.
	SeenAt time.Time
}

// Claimed tells the events of a claim apart: Earlier holds the first sighting of
// those that were seen before; all others are fresh.
type Claimed struct {
	Earlier map[uuid.UUID]Sighting
}

// Subject is an event and its order.
type Subject struct {
	EventID uuid.UUID
	OrderID int64
}

// Facts are what the book says about some subjects at one instant.
type Facts struct {
	Charges map[uuid.UUID]Charge  // final charges by event
	Orders  map[int64]Charge      // the charge that claims the order
	Intents map[uuid.UUID]*Intent // open intents by event
	Holders map[int64]uuid.UUID   // the event whose intent claims the order
}

// Writes are the intents and charges that one transaction writes.
type Writes struct {
	Insert  []Intent  // waiting or held: claim no order
	Update  []Intent  // compared with what they were
	Delete  []*Intent // finished; compared likewise
	Charges []Charge
}

// ErrCursor is returned for a page cursor that this store did not give out.
var ErrCursor = errors.New("not a cursor of this list")
