package domain

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// situation is what a transaction knows about one event when an answer to its
// charge is to be recorded.
type situation struct {
	event  *Event
	intent *Intent // locked by this transaction; nil when there is none
	charge *Charge // the event's final charge
	order  *Charge // the charge of another event that claims the order
	claims bool    // the event's claim is committed, or stands in this transaction
	record *Record // what was charged, where the intent may be gone meanwhile
}

// ruling collects what one transaction writes. Its methods decide; only write
// touches the store.
type ruling struct {
	policy *Policy
	now    time.Time

	writes Writes
	stats  Stats
	// counting are the counters that are being changed: here, they cost no allocation.
	counting Counters
	// duplicates are the records that repeat an event, in their order.
	duplicates []Duplicate
	letters    []Letter
	resolve    []uuid.UUID
	told       []outcome   // captured and declined, to be published
	turn       *letterTurn // what an operator does to a letter
	news       []*Letter   // those of the letters that say something new, once written
	// stale counts answers that came after their lease had gone to somebody else.
	stale int
	// unexpected are the events whose money was taken although they, or their
	// order, were final otherwise: an alarm.
	unexpected []uuid.UUID
}

func newRuling(p *Policy, now time.Time) *ruling {
	return &ruling{policy: p, now: now, stats: Stats{}}
}

// expect makes room for so many events that will end.
func (r *ruling) expect(n int) {
	r.writes.Charges = make([]Charge, 0, n)
	r.writes.Delete = make([]*Intent, 0, n)
}

// settle decides what an answer makes of an event. The answer belongs to the
// lease named by token: once that lease is gone, only a capture still counts.
func (r *ruling) settle(s situation, token uuid.UUID, a Answer) {
	in := s.intent
	owned := in.ownedBy(token)
	if owned {
		in.spend(r.policy, a)
	}
	switch {
	case a.Kind == Captured:
		r.captured(s, a)
	case !owned:
		r.stale++
	case s.charge != nil:
		r.drop(in)
	case a.Kind.Definite() && !s.claims:
		r.keep(in, a)
	case a.Kind == Declined:
		r.finish(s, ChargeDeclined, a)
	case a.Kind == Rejected:
		r.park(in, ReasonProviderRejected, a.Detail)
	case a.Kind == KeyConflict && a.Found:
		r.park(in, ReasonNeedsReconciliation, a.Detail)
	case a.Kind == KeyConflict:
		r.park(in, ReasonIdempotencyConflict, a.Detail)
	default:
		r.reschedule(s, a)
	}
}

// spend takes the answer's attempts for the ones that the lease had reserved.
// An answer that was stored has done so before.
func (i *Intent) spend(p *Policy, a Answer) {
	if i.State != Calling {
		return
	}
	used := a.Posts
	if a.Kind == Misconfigured && used > 0 {
		used-- // the provider refused us, not the charge: not an attempt
	}
	i.Attempts += used - p.QuickAttempts
	i.MaybeSent = i.MaybeSent || a.MaybeSent || a.Kind == Unknown || a.Kind == KeyConflict
	if !i.MaybeSent && !a.Kind.Definite() {
		i.FirstAttemptAt = time.Time{}
	}
	i.LastError = a.Detail
}

// captured records that the money was taken, whoever's lease it was.
func (r *ruling) captured(s situation, a Answer) {
	switch {
	case s.charge != nil && s.charge.Status == ChargeCaptured:
		r.drop(s.intent)
	case s.charge != nil || s.order != nil || s.intent == nil:
		r.surprise(s, a)
	case !s.claims:
		r.keep(s.intent, a)
	default:
		r.finish(s, ChargeCaptured, a)
	}
}

// surprise parks a capture that contradicts what is final, and overwrites nothing.
func (r *ruling) surprise(s situation, a Answer) {
	r.unexpected = append(r.unexpected, s.event.ID)
	detail := "captured as " + a.ProviderChargeID + " although the event or its order is final otherwise"
	if s.intent == nil || s.charge != nil {
		r.drop(s.intent)
		r.letters = append(r.letters, Letter{
			Record: s.source(), Reason: ReasonNeedsReconciliation, Detail: detail, State: LetterOpen,
			EventID: s.event.ID, OrderID: s.event.OrderID, Group: r.policy.Group, At: r.now, Reopens: true,
		})
		return
	}
	s.intent.MaybeSent = true
	if s.intent.FirstAttemptAt.IsZero() {
		s.intent.FirstAttemptAt = r.now
	}
	r.park(s.intent, ReasonNeedsReconciliation, detail)
}

// source is the record that was charged.
func (s *situation) source() Record {
	if s.intent != nil {
		return s.intent.Record
	}
	return *s.record
}

// keep puts a definite answer down on an intent whose claim is not committed:
// the next claim, or the worker after it, finishes it without another call.
func (r *ruling) keep(in *Intent, a Answer) {
	in.State = Answered
	in.Answer = &a
	in.DueAt = r.now
	in.LeaseUntil = time.Time{}
	if in.Token == uuid.Nil {
		in.Token = uuid.New()
	}
	r.save(in)
}

// save writes the intent: anew where it has no row yet.
func (r *ruling) save(in *Intent) {
	if in.Stored() {
		r.writes.Update = append(r.writes.Update, *in)
	} else {
		r.writes.Insert = append(r.writes.Insert, *in)
	}
}

// finish makes the event final and ends its intent.
func (r *ruling) finish(s situation, status ChargeStatus, a Answer) {
	c := settled(s.event, s.intent, status, a, r.now)
	r.writes.Charges = append(r.writes.Charges, c)
	var n Counters
	n.final(status)
	r.stats.add(statKey(s.intent.Group, c.Source, r.now), n) // where the claim was counted
	r.drop(s.intent)
	if r.policy.PublishEvents && eventTypeOf(status) != "" {
		r.told = append(r.told, outcome{charge: c, traceParent: s.event.TraceParent, traceState: s.event.TraceState})
	}
}

// drop ends an intent; a dead letter that it left open, or that an operator sent
// round, is resolved with it.
func (r *ruling) drop(in *Intent) {
	if in == nil || !in.Stored() {
		return
	}
	r.writes.Delete = append(r.writes.Delete, in)
	if in.State.Dead() || !in.ReplayedAt.IsZero() {
		r.resolve = append(r.resolve, in.EventID)
	}
}

// taken decides about an event whose order another event's charge claims.
func (r *ruling) taken(s situation) {
	same := s.order.Status == ChargeCaptured && s.order.Amount == s.event.Total
	switch {
	case s.intent.MaybeSent:
		r.park(s.intent, ReasonNeedsReconciliation, "the order was captured by another event while this one may have been charged")
	case same:
		r.finish(s, ChargeDuplicateOrder, Answer{})
	default:
		r.park(s.intent, ReasonOrderConflict, "the order is claimed by event "+s.order.EventID.String()+" with another amount or outcome")
	}
}

// park makes a dead letter of the intent. One that may have been charged keeps
// its order claimed; a surely uncharged one leaves it free.
func (r *ruling) park(in *Intent, reason Reason, detail string) {
	in.State = Held
	if in.MaybeSent {
		in.State = Parked
	}
	in.LeaseUntil = time.Time{}
	in.LastError = detail
	r.save(in)
	r.letters = append(r.letters, Letter{
		Record: in.Record, Reason: reason, Detail: detail, State: LetterOpen,
		EventID: in.EventID, OrderID: in.OrderID, Group: in.Group, At: r.now, Reopens: true,
	})
}

// reschedule gives an intent without a definite answer its next due time, or
// parks it when it has been retried for long enough. What stopped because of us
// is due at once and parks nothing.
func (r *ruling) reschedule(s situation, a Answer) {
	in := s.intent
	if a.Kind == Withheld && !s.claims && !in.MaybeSent {
		// Nothing was sent under it and nobody claims it: the event may become final elsewhere
		// without a look at it, and then no claim would ever end it.
		r.drop(in)
		return
	}
	in.State, in.LeaseUntil = Waiting, time.Time{}
	if in.MaybeSent {
		in.State = UnknownOutcome
	}
	switch {
	case a.Kind == Withheld || a.Kind == Misconfigured:
		in.DueAt = r.now
	case s.claims && !a.Probe && r.policy.expired(in, r.now):
		r.park(in, ReasonRetriesExhausted, a.Detail)
		return
	case a.RetryAfter > 0:
		in.DueAt = r.now.Add(min(a.RetryAfter, maxRetryAfter))
	case a.Probe: // the others take their turns; once the provider is back, none of them waits for long
		in.DueAt = r.now.Add(pause(probeTurn, probeTurn, probeTurn))
	default:
		in.DueAt = r.now.Add(pause(r.now.Sub(in.since()), minRetryPause, maxRetryPause))
	}
	r.save(in)
}

// postpone lets a waiting intent look again later whether its order is free.
func (r *ruling) postpone(in *Intent) {
	if r.policy.expired(in, r.now) {
		r.park(in, ReasonRetriesExhausted, "the order stayed claimed by another event")
		return
	}
	in.DueAt = r.now.Add(pause(r.now.Sub(in.CreatedAt)/4, minOrderPoll, maxOrderPoll))
	r.save(in)
}

// count changes the counters of the record at c.
func (r *ruling) count(c Coordinates, change func(*Counters)) {
	k := statKey(r.policy.Group, c, r.now)
	r.counting = r.stats[k]
	change(&r.counting)
	r.stats[k] = r.counting
}

// write carries the ruling out, in the order of the locks.
func (r *ruling) write(ctx context.Context, tx Tx) error {
	if err := tx.Write(ctx, r.writes); err != nil {
		return err
	}
	if err := r.publishOutcomes(ctx, tx); err != nil {
		return err
	}
	if err := tx.Count(ctx, r.stats); err != nil {
		return err
	}
	if r.turn != nil {
		if err := tx.Turn(ctx, r.turn.was, r.turn.now, r.turn.action); err != nil {
			return err
		}
	}
	// What ended is resolved before what is new is parked, which may be of the
	// same event: money that was taken for one that is final otherwise.
	if err := tx.Resolve(ctx, r.resolve, r.now); err != nil {
		return err
	}
	fresh, err := tx.Park(ctx, r.letters)
	if err != nil {
		return err
	}
	if err := tx.Count(ctx, r.repeated(fresh)); err != nil {
		return err
	}
	if err := r.log(ctx, tx); err != nil {
		return err
	}
	// Only now is it known which of them say something new.
	return r.publishLetters(ctx, tx)
}

// letterTurn is what an operator makes of an open letter.
type letterTurn struct {
	was, now Letter
	action   Action
}

// repeated corrects the counters for records that were parked before: an invalid
// record is counted once, and a conflicting one that comes again is a
// redelivery. Whether a letter is new is known only once it is written; its
// counters are locked by then.
func (r *ruling) repeated(fresh map[Coordinates]bool) Stats {
	stats := Stats{}
	for i := range r.letters {
		l := &r.letters[i]
		if l.Reopens {
			r.news = append(r.news, l)
			continue
		}
		if fresh[l.Record.Coordinates] {
			r.news = append(r.news, l)
			fresh[l.Record.Coordinates] = false // a second copy in this batch is a repetition
			continue
		}
		if l.Reason == ReasonConflictingPayload {
			stats.add(statKey(r.policy.Group, l.Record.Coordinates, r.now), Counters{Conflicting: -1, Redelivered: 1})
			r.relog(l.Record.Coordinates)
		} else {
			stats.add(statKey(r.policy.Group, l.Record.Coordinates, r.now), Counters{Received: -1, Invalid: -1})
		}
	}
	return stats
}
