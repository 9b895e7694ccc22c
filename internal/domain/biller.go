package domain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/google/uuid"
)

// errSplit sends a batch through in parts: its records decide about
// each other in a way that only separate transactions can settle.
var errSplit = errors.New("the records of the batch need transactions of their own")

// Biller is the heart: it makes every record of a batch durable, and charges
// each fresh event once.
type Biller struct {
	policy  Policy
	decoder Decoder
	book    Book
	caller  *caller
	clock   Clock
	log     *slog.Logger
	pace    pace
	calling atomic.Int32 // batches whose calls have not all begun
	lates   lates        // answers that came too late for their batch
	hands   hands        // those who call, for calls left behind by their batch too
}

// NewBiller returns a Biller over a store and a provider. Gate is shared with
// whoever shows its state.
func NewBiller(p Policy, d Decoder, book Book, provider Provider, gate *Gate, clock Clock, log *slog.Logger) *Biller {
	limiter := p.Limiter
	if limiter == nil {
		limiter = newFixedLimiter(p.MaxInFlight)
	}
	return &Biller{
		policy: p, decoder: d, book: book, clock: clock, log: log, hands: newHands(),
		caller: &caller{provider: provider, gate: gate, limiter: limiter, breaker: p.Breaker, log: log},
	}
}

// Admit waits until a batch may be taken: at once, unless intake is stopped.
func (b *Biller) Admit(ctx context.Context) (Pass, error) { return b.caller.gate.Admit(ctx) }

// Keys returns what stands for the record's event and its order: no two batches
// of a process should hold one of them at a time, or one would wait for the
// other's calls. A record that holds no valid event has none.
func (b *Biller) Keys(r *Record) (event, order Key, valid bool) {
	found := r.decode(b.decoder)
	if found.invalid != nil {
		return Key{}, Key{}, false
	}
	return Key{event: found.event.ID}, Key{order: found.event.OrderID}, true
}

// Bill makes every record of the batch durable: finished, a duplicate,
// unfinished with an intent, or parked. Their offsets may be committed after it
// returned nil, and only then. On an error nothing that it decided stands, or
// nobody knows; the same records are to be billed again, as often as it takes:
// what was charged meanwhile has left its evidence and is not charged twice.
//
// When ctx ends, Bill gives up if nothing was sent. Charges in flight are
// finished and recorded all the same, within the policy's bounds.
func (b *Biller) Bill(ctx context.Context, pass Pass, records []Record) error {
	return b.apart(ctx, pass, records, b.bill(ctx, pass, records))
}

// apart bills the records of a refused batch in halves, and those in halves again, until the
// one that the database refuses is alone: it harms no neighbour, and costs them a few
// transactions. The parts keep their order.
func (b *Biller) apart(ctx context.Context, pass Pass, records []Record, err error) error {
	refused := errors.Is(err, ErrData)
	switch {
	case len(records) == 1 && refused:
		return b.parkUnstorable(ctx, &records[0])
	case len(records) == 1 || !refused && !errors.Is(err, errSplit):
		return err
	}
	middle := len(records) / 2
	for _, half := range [][]Record{records[:middle], records[middle:]} {
		if err := b.apart(ctx, pass, half, b.bill(ctx, pass, half)); err != nil {
			return err
		}
	}
	return nil
}

// bill is one batch in one transaction.
func (b *Biller) bill(ctx context.Context, pass Pass, records []Record) error {
	batch := newBatch(b.decoder, records)
	batch.guard(&b.policy, b.clock.Now())
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.transactionBound())
	defer cancel()

	err := b.book.Transact(work, func(tx Tx) error {
		if err := b.claim(ctx, tx, batch); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		Reach(ctx, b.policy.Faults, AfterClaim)
		if err := b.intend(work, tx, batch); err != nil {
			return fmt.Errorf("intend: %w", err)
		}
		b.charge(ctx, work, pass, batch)
		if err := b.record(work, tx, batch); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if err := pass.move(work, tx, records); err != nil {
			return fmt.Errorf("move: %w", err)
		}
		Reach(ctx, b.policy.Faults, BeforeCommit)
		return nil
	})
	batch.calls.end()
	if err != nil {
		b.keepAnswers(ctx, batch)
		return fmt.Errorf("bill %d records from %s: %w", len(records), records[0].Coordinates, err)
	}
	Reach(ctx, b.policy.Faults, AfterCommit)
	return nil
}

// record writes what became of every record, in the order of the locks.
func (b *Biller) record(ctx context.Context, tx Tx, batch *batch) error {
	if err := b.unclaim(ctx, tx, batch); err != nil {
		return err
	}
	batch.follow()
	var touched []uuid.UUID
	for _, it := range batch.leaders {
		if it.fate == fateAdopted {
			touched = append(touched, it.event.ID)
		}
	}
	intents, err := tx.Lock(ctx, touched)
	if err != nil {
		return err
	}
	r := newRuling(&b.policy, b.clock.Now())
	r.expect(len(batch.opened()))
	for _, it := range batch.items {
		in := intents[it.event.ID]
		if it.opened != nil {
			ours := *it.opened // compared with its row when it is written
			in = &ours
		}
		if err := r.rule(it, in); err != nil {
			return fmt.Errorf("event %s: %w", it.event.ID, err)
		}
	}
	if err := r.write(ctx, tx); err != nil {
		return err
	}
	b.report(ctx, r)
	return nil
}

// report says what people must know of a ruling.
func (b *Biller) report(ctx context.Context, r *ruling) {
	for _, id := range r.unexpected {
		b.log.ErrorContext(ctx, "unexpected_capture: money was taken for an event that is final otherwise", "event_id", id)
	}
	for _, l := range r.news {
		b.log.WarnContext(ctx, "dead letter", "reason", l.Reason, "detail", l.Detail, "event_id", l.EventID, "record", l.Record.String())
	}
	if r.stale > 0 {
		b.log.WarnContext(ctx, "answers came after their lease had passed on", "count", r.stale)
	}
}
