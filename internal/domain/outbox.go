package domain

import "time"

// OutboxPosition is a place in the order in which messages are published: by the
// transaction that appended them, then by the order within it. That is not the order
// in which transactions committed.
type OutboxPosition struct {
	Transaction int64 // the database's 64-bit id of the transaction
	ID          int64
}

// Outgoing is a message that was committed and is to be published.
type Outgoing struct {
	Position  OutboxPosition
	Slot      int16 // of the outbox, which is emptied as a whole
	CreatedAt time.Time
	Message
}

// Refusal is a message that the brokers will not take, now or later.
type Refusal struct {
	Position OutboxPosition
	Topic    string
	Reason   string
}

// Backlog is what is still to be published.
type Backlog struct {
	Rows    int       // at most MaxBacklog: counting goes no further
	Oldest  time.Time // when the first of them was appended; zero when there is none
	Refused int       // kept aside, refused by the brokers; at most MaxBacklog
}

// MaxBacklog is how far a backlog is counted.
const MaxBacklog = 100_000
