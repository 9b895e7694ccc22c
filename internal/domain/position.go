package domain

import (
	"context"
	"errors"
)

// ErrFenced is returned by a Book that keeps positions: the partition has been
// given to somebody else since. Nothing of the transaction stands, nor will
// anything that is tried again under the same epoch.
var ErrFenced = errors.New("the partition belongs to somebody else")

// NoOffset is the Next of a position that is not known.
const NoOffset = int64(-1)

// NoLeaderEpoch is the leader epoch of a position whose broker told none.
const NoLeaderEpoch = int32(-1)

// Position is how far the records of a partition are durable, kept in the book
// itself for a group that does not leave it to Kafka.
type Position struct {
	Group     string
	Topic     string
	Partition int32
	// Next is the offset to go on at: all below it is durable. NoOffset: not known,
	// and a move to it moves nothing.
	Next int64
	// LeaderEpoch is that of the record before Next, so that a log that was cut back
	// is noticed. NoLeaderEpoch: not known.
	LeaderEpoch int32
	// Epoch is the fencing token: raised whenever the partition is assigned, and
	// compared by every write.
	Epoch int64
}

// Progress tells the position that holds once the records become durable, in the
// moment before their transaction commits: the prefix of the partition that is
// known to be committed, and these records only where nothing before them is
// still open. The records are those of a batch or, where they go in parts, some
// that follow others of it which stand already.
type Progress func(ctx context.Context, records []Record) (Position, error)

// Keeping returns the pass for a batch whose transaction writes the partition's
// position as well.
func (p Pass) Keeping(progress Progress) Pass {
	p.progress = progress
	return p
}

// Position tells the position that is to be written in the transaction that makes
// the records durable; kept is false where Kafka alone keeps it.
func (p Pass) Position(ctx context.Context, records []Record) (at Position, kept bool, err error) {
	if p.progress == nil {
		return Position{}, false, nil
	}
	at, err = p.progress(ctx, records)
	return at, true, err
}

// move writes the position, as the last lock of the records' transaction: a batch
// waits for another one of its partition only while that one commits.
func (p Pass) move(ctx context.Context, tx Tx, records []Record) error {
	at, kept, err := p.Position(ctx, records)
	if err != nil || !kept {
		return err
	}
	return tx.Move(ctx, at)
}
