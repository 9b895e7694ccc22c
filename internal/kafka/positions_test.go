package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"example.com/billing/internal/domain"
)

// positionsIn says where a test's group keeps its positions.
type positionsIn string

const (
	inKafka  positionsIn = "kafka"
	inMemory positionsIn = "a book beside"
)

// inEveryStore runs a test with the positions in Kafka alone, and in a book.
func inEveryStore(t *testing.T, test func(*testing.T, positionsIn)) {
	t.Helper()
	for _, in := range []positionsIn{inKafka, inMemory} {
		t.Run(string(in), func(t *testing.T) {
			t.Parallel()
			test(t, in)
		})
	}
}

// setupKeeping is setup for a group that keeps its positions there.
func setupKeeping(tb testing.TB, in positionsIn, brokers []string, partitions int32, settings map[string]string) *testBundle {
	tb.Helper()
	b := setup(tb, brokers, partitions, settings)
	if in == inMemory {
		b.kept = newPositions()
	}
	return b
}

// positions are kept in memory, by the contract of kafka.Positions.
type positions struct {
	mu   sync.Mutex // guards what follows
	rows map[int32]domain.Position
	// away makes every transaction fail.
	away bool
	took int // how often a partition was taken
	back int // how often a position went back
}

func newPositions() *positions { return &positions{rows: map[int32]domain.Position{}} }

var errAway = errors.New("the database is away")

func (p *positions) Take(ctx context.Context, group, topic string, partition int32) (domain.Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return domain.Position{}, errAway
	}
	row, known := p.rows[partition]
	if !known {
		row = domain.Position{
			Group: group, Topic: topic, Partition: partition, Next: domain.NoOffset, LeaderEpoch: domain.NoLeaderEpoch,
		}
	}
	row.Epoch++
	p.took++
	p.rows[partition] = row
	return row, ctx.Err()
}

func (p *positions) Move(ctx context.Context, at domain.Position) error {
	return p.write(ctx, at, func(row domain.Position) bool { return at.Next > row.Next })
}

func (p *positions) Rewind(ctx context.Context, at domain.Position) error {
	return p.write(ctx, at, func(domain.Position) bool { p.back++; return true })
}

func (p *positions) write(ctx context.Context, at domain.Position, moves func(domain.Position) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	row := p.rows[at.Partition]
	switch {
	case p.away:
		return errAway
	case row.Epoch != at.Epoch:
		return fmt.Errorf("epoch %d, not %d: %w", at.Epoch, row.Epoch, domain.ErrFenced)
	case moves(row):
		p.rows[at.Partition] = at
	}
	return ctx.Err()
}

// offsets returns the positions of the partitions that have one.
func (p *positions) offsets() map[int32]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	offsets := map[int32]int64{}
	for partition, row := range p.rows {
		if row.Next != domain.NoOffset {
			offsets[partition] = row.Next
		}
	}
	return offsets
}

// set puts positions there by hand.
func (p *positions) set(group, topic string, to map[int32]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for partition, next := range to {
		epoch := p.rows[partition].Epoch + 1
		p.rows[partition] = domain.Position{
			Group: group, Topic: topic, Partition: partition, Next: next, LeaderEpoch: domain.NoLeaderEpoch, Epoch: epoch,
		}
	}
}

func (p *positions) leave(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}
