package domain

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// errNotBegun: nothing is known of an event that it may have been charged for.
var errNotBegun = errors.New("nothing was begun")

// parkUnstorable parks a record whose values the database refuses. Where its charge was
// begun, it is the charge that is parked, with what is known of its end: the money may
// have been taken. Else it is the record: with its bytes, or where the database refuses
// those too, by its coordinates alone.
func (b *Biller) parkUnstorable(ctx context.Context, record *Record) error {
	known, err := b.parkBegun(ctx, record)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, errNotBegun) && !errors.Is(err, ErrData):
		return err
	case known != "":
		known = "; " + known
	}
	err = b.parkAs(ctx, record, "the database refuses a value of the event"+known)
	if errors.Is(err, ErrData) {
		bare := &Record{Coordinates: record.Coordinates}
		err = b.parkAs(ctx, bare, "the database refuses a value of the event and the record itself: its bytes are in the topic only"+known)
	}
	return err
}

// parkBegun claims an event for the intent that its refused transaction left behind, and
// parks that, in a transaction that writes nothing else. It returns what is known of the
// charge, and errNotBegun where there is no such intent.
func (b *Biller) parkBegun(ctx context.Context, record *Record) (known string, err error) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.transactionBound())
	defer cancel()
	batch := newBatch(b.decoder, []Record{*record})
	it := batch.items[0]
	r := newRuling(&b.policy, b.clock.Now())
	err = b.book.Transact(work, func(tx Tx) error {
		if err := b.claim(work, tx, batch); err != nil {
			return err
		}
		if it.fate != fateAdopted {
			return errNotBegun
		}
		intents, err := tx.Lock(work, []uuid.UUID{it.event.ID})
		if err != nil {
			return err
		}
		in := intents[it.event.ID]
		if in == nil || in.Claimed {
			return ErrMoved
		}
		known = in.known()
		r.received(it, in)
		in.Claimed, in.Group = true, b.policy.Group
		r.parkKnown(in, "the database refuses to record its end: "+known)
		return r.write(work, tx)
	})
	if err != nil {
		return known, fmt.Errorf("park the charge of %s: %w", record.Coordinates, err)
	}
	b.report(ctx, r)
	return known, nil
}

// parkKnown parks an intent of which more is known than its letter's reason says. One that
// may have been charged keeps its order.
func (r *ruling) parkKnown(in *Intent, detail string) {
	if in.State == Calling || in.State == Answered && in.Answer.Kind == Captured {
		in.doubt(r.now)
	}
	r.park(in, ReasonNeedsReconciliation, bounded(detail))
}

// known says in a few words of ASCII what is known of the charge.
func (i *Intent) known() string {
	switch i.State {
	case Answered:
		return i.Answer.known()
	case Waiting, Held:
		return "it was not sent"
	case Calling, UnknownOutcome, Parked:
	}
	return "it may have been charged"
}

// known says in a few words of ASCII what the provider answered.
func (a *Answer) known() string {
	known := "it was answered: " + a.Kind.String()
	if a.Kind == Captured && a.ProviderChargeID != "" {
		known += " as " + strconv.QuoteToASCII(a.ProviderChargeID)
	}
	return known
}

// parkAs parks a record as one that holds no valid event.
func (b *Biller) parkAs(ctx context.Context, record *Record, detail string) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.policy.transactionBound())
	defer cancel()
	r := newRuling(&b.policy, b.clock.Now())
	r.invalid(record, &InvalidError{Reason: ReasonUnstorable, Detail: bounded(detail)})
	err := b.book.Transact(work, func(tx Tx) error { return r.write(work, tx) })
	if err != nil {
		return fmt.Errorf("park %s: %w", record.Coordinates, err)
	}
	b.report(ctx, r)
	return nil
}
