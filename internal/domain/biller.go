package domain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
)

// errSplit sends a batch through one record at a time: its records decide about
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
	late    sync.WaitGroup // calls, those left behind by their batch included
}

// NewBiller returns a Biller over a store and a provider. Gate is shared with
// whoever shows its state.
func NewBiller(p Policy, d Decoder, book Book, provider Provider, gate *Gate, clock Clock, log *slog.Logger) *Biller {
	limiter := p.Limiter
	if limiter == nil {
		limiter = newFixedLimiter(p.MaxInFlight)
	}
	return &Biller{
		policy: p, decoder: d, book: book, clock: clock, log: log,
		caller: &caller{provider: provider, gate: gate, limiter: limiter, log: log},
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
	err := b.bill(ctx, pass, records)
	if errors.Is(err, ErrData) || errors.Is(err, errSplit) {
		return b.billEach(ctx, pass, records)
	}
	return err
}

// bill is one batch in one transaction.
func (b *Biller) bill(ctx context.Context, pass Pass, records []Record) error {
	batch := newBatch(b.decoder, records)
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.transactionBound())
	defer cancel()

	err := b.book.Transact(work, func(tx Tx) error {
		if err := b.claim(ctx, tx, batch); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if err := b.intend(work, tx, batch); err != nil {
			return fmt.Errorf("intend: %w", err)
		}
		b.charge(ctx, work, pass, batch)
		if err := b.record(work, tx, batch); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		return nil
	})
	batch.calls.end()
	if err != nil {
		b.keepAnswers(ctx, batch)
		return fmt.Errorf("bill %d records from %s: %w", len(records), records[0].Coordinates, err)
	}
	return nil
}

// billEach bills the records one by one, so that one that the database refuses
// harms no neighbour.
func (b *Biller) billEach(ctx context.Context, pass Pass, records []Record) error {
	for i := range records {
		err := b.bill(ctx, pass, records[i:i+1])
		if errors.Is(err, ErrData) {
			err = b.parkUnstorable(ctx, &records[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// claim inserts the batch's events and tells the fresh ones from duplicates.
func (b *Biller) claim(ctx context.Context, tx Tx, batch *batch) error {
	if len(batch.leaders) == 0 {
		return nil
	}
	claimed, err := tx.Claim(ctx, b.policy.Group, batch.sightings())
	if err != nil {
		return err
	}
	var fresh []*item
	for _, it := range batch.leaders {
		if earlier, ok := claimed.Earlier[it.event.ID]; ok {
			it.fate = it.repeats(earlier)
			continue
		}
		it.claimed, it.first = true, it.sighting()
		fresh = append(fresh, it)
	}
	facts, err := tx.Look(ctx, subjects(fresh))
	if err != nil {
		return err
	}
	orders := make(map[int64]bool, len(fresh))
	for _, it := range fresh {
		it.classify(facts)
		if it.fate == fateCharged && orders[it.event.OrderID] {
			it.fate = fateSibling
		}
		if it.fate == fateCharged {
			orders[it.event.OrderID] = true
		}
	}
	return nil
}

// classify decides the fate of an event that this transaction claims, by what
// the book holds about it: a final charge or a claimed intent makes it a
// duplicate, whatever processed_event has forgotten.
func (it *item) classify(facts Facts) {
	charge, final := facts.Charges[it.event.ID]
	own := facts.Intents[it.event.ID]
	order, taken := facts.Orders[it.event.OrderID]
	holder, held := facts.Holders[it.event.OrderID]
	it.order = nil
	if taken {
		it.order = &order
	}
	switch {
	case final:
		it.fate = it.repeats(Sighting{EventID: charge.EventID, Source: charge.Source, Fingerprint: charge.Fingerprint})
	case own != nil && (own.Claimed || own.Fingerprint != it.fingerprint):
		it.fate = it.repeats(Sighting{EventID: own.EventID, Source: own.Record.Coordinates, Fingerprint: own.Fingerprint})
	case own != nil:
		it.fate = fateAdopted
	case taken:
		it.fate = fateTaken
	case held && holder != it.event.ID:
		it.fate = fateSibling
	default:
		it.fate = fateCharged
	}
}

// intend commits an intent for every event to be charged, on a connection of its
// own, and then looks again: only what is still neither final nor claimed by
// another event may be sent.
func (b *Biller) intend(ctx context.Context, tx Tx, batch *batch) error {
	charging := batch.charging()
	if len(charging) == 0 {
		return nil
	}
	now := b.clock.Now()
	intents := make([]Intent, len(charging))
	for i, it := range charging {
		intents[i] = newIntent(&it.event, it.record, b.policy.Group, now)
		intents[i].lease(&b.policy, now)
	}
	opened, err := b.book.Open(ctx, intents)
	if err != nil {
		return err
	}
	for i, it := range charging {
		if opened[it.event.ID] {
			it.opened = &intents[i]
			it.opened.read()
		}
	}
	look := tx.Look
	if len(opened) == len(charging) {
		look = tx.Final // no intent is in the way
	}
	facts, err := look(ctx, subjects(charging))
	if err != nil {
		return err
	}
	for _, it := range charging {
		it.lookAgain(facts)
	}
	return nil
}

// lookAgain decides the fate of an event anew, once its intent is committed or
// was kept out by another one.
func (it *item) lookAgain(facts Facts) {
	if it.opened != nil {
		// Ours: it stands for the event and its order until we write to it.
		delete(facts.Intents, it.event.ID)
		delete(facts.Holders, it.event.OrderID)
	}
	it.classify(facts)
	if it.fate == fateCharged && it.opened == nil {
		it.fate = fateSibling // whoever was in the way is gone: the worker sees to it
	}
}

// charge calls the provider for every event that may be sent, as wide as its
// latency asks for, and waits for the answers. What has begun and is not answered
// at the soft deadline is left behind: its intent is claimed as it is, and its
// answer is recorded when it comes.
func (b *Biller) charge(stop, work context.Context, pass Pass, batch *batch) {
	ready := batch.charging()
	if len(ready) == 0 {
		return
	}
	calls := newCalls(ready)
	batch.calls = calls
	work = context.WithoutCancel(work) // a call left behind outlives the batch
	caller := func() {
		for it := calls.next(); it != nil; it = calls.next() {
			lease := *it.opened
			answer := b.call(stop, work, pass, &it.event, &lease)
			if !calls.answered(it, answer) {
				b.settleLate(work, it, &lease, answer, calls)
			}
		}
	}
	for width := b.pace.width(len(ready)); ; width *= 2 {
		for range min(width, len(ready)) {
			b.late.Go(caller)
		}
		if calls.haveBegun(widenAfter) {
			break // else the provider is slower than it was: more callers
		}
	}
	calls.wait(b.pace.patience(b.policy.SoftDeadline, b.policy.ChargeBudget))
}

// settleLate records the answer to a call that was left behind, once the
// transaction of its batch has ended.
func (b *Biller) settleLate(ctx context.Context, it *item, lease *Intent, answer Answer, calls *calls) {
	<-calls.ended
	ctx, cancel := context.WithTimeout(ctx, b.policy.Lease)
	defer cancel()
	b.settleWithin(ctx, &it.event, lease, answer)
}

// Drain waits for the calls that batches have left behind. Each ends within its
// lease.
func (b *Biller) Drain() { b.late.Wait() }

// call sends the charge of a leased intent, within its budget.
func (b *Biller) call(stop, work context.Context, pass Pass, e *Event, in *Intent) Answer {
	ctx, cancel := context.WithTimeout(work, b.policy.budget(in, b.clock.Now()))
	defer cancel()
	began := time.Now() //nolint:forbidigo // a latency, measured by the monotonic clock
	answer := b.caller.call(stop, ctx, pass, e.Request())
	if answer.Posts > 0 {
		b.pace.observe(time.Since(began) / time.Duration(answer.Posts))
	}
	return answer
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

// unclaim takes back the claims of events that turned out to carry another
// meaning than the one that the book knows: they must not stand for it.
func (b *Biller) unclaim(ctx context.Context, tx Tx, batch *batch) error {
	var ids []uuid.UUID
	for _, it := range batch.leaders {
		if !it.claimed || it.fate != fateConflicting {
			continue
		}
		if len(batch.followers[it]) > 0 {
			return errSplit // one of them may be the true one, and fresh
		}
		ids = append(ids, it.event.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	return tx.Unclaim(ctx, b.policy.Group, ids)
}

// parkUnstorable parks a record whose values the database refuses.
func (b *Biller) parkUnstorable(ctx context.Context, record *Record) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.transactionBound())
	defer cancel()
	r := newRuling(&b.policy, b.clock.Now())
	r.invalid(record, &InvalidError{Reason: ReasonUnstorable, Detail: "the database refuses a value of the event"})
	err := b.book.Transact(work, func(tx Tx) error { return r.write(work, tx) })
	if err != nil {
		return fmt.Errorf("park %s: %w", record.Coordinates, err)
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
