package audit

import (
	"context"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// row is a row of a table that names a record of the range as its own.
type row struct {
	problem Problem // what it is if the topic has no such record
	at      domain.Coordinates
	event   uuid.UUID
	order   int64
}

func chargeRow(c *domain.Charge) row { return row{OrphanCharge, c.Source, c.EventID, c.OrderID} }
func intentRow(in *domain.Intent) row {
	return row{OrphanIntent, in.Record.Coordinates, in.EventID, in.OrderID}
}
func rowOf(p *domain.Sighting) row { return row{OrphanEvent, p.Source, p.EventID, 0} }

func (a *Auditor) inRange(c domain.Coordinates) bool {
	s := a.spans[c.Partition]
	return c.Topic == a.name && s != nil && s.holds(c.Offset)
}

// doubt keeps a row for a second look, unless the topic had its record. A bit
// cannot tell events apart: where two rows name one record, both are looked at.
func (a *Auditor) doubt(ctx context.Context, r row) error {
	s := a.spans[r.at.Partition]
	n := r.at.Offset - s.from
	met, named := s.charged, s.chargedBy
	if r.problem == OrphanEvent {
		met, named = s.claimed, s.claimedBy
	}
	switch {
	case met.has(n) && named.has(n):
		if len(a.crowded) < maxSuspects {
			a.crowded[r.at] = true
		}
		return nil
	case met.has(n):
		named.set(n)
		return nil
	case s.stands.has(n) && r.at.Offset >= s.Committed:
		return nil // rows appear at all times there: it is enough that a record stands there
	}
	return a.suspect(ctx, r)
}

func (a *Auditor) suspect(ctx context.Context, r row) error {
	a.orphans = append(a.orphans, r)
	if len(a.orphans) >= maxSuspects {
		return a.settleOrphans(ctx)
	}
	return nil
}

// settleOrphans looks again whether the rows are still there, and their records not.
func (a *Auditor) settleOrphans(ctx context.Context) error {
	if len(a.orphans) == 0 {
		return nil
	}
	if err := a.pause(ctx); err != nil {
		return err
	}
	starts, err := a.starts(ctx)
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(a.orphans))
	for i := range a.orphans {
		ids[i] = a.orphans[i].event
	}
	evidence, err := a.books.Evidence(ctx, a.options.Group, ids, nil)
	if err != nil {
		return err
	}
	for _, r := range a.orphans {
		if r.at.Offset < starts[r.at.Partition] || !r.standsIn(&evidence) {
			continue // the record's time was over, or the row's
		}
		if err := a.confirm(ctx, r); err != nil {
			return err
		}
	}
	a.orphans = a.orphans[:0]
	return nil
}

// starts returns the first offset of each partition as it is now.
func (a *Auditor) starts(ctx context.Context) (map[int32]int64, error) {
	extents, err := a.topic.Extents(ctx)
	if err != nil {
		return nil, err
	}
	starts := make(map[int32]int64, len(extents))
	for _, e := range extents {
		starts[e.Partition] = e.Start
	}
	return starts, nil
}

// standsIn reports whether the row still names the record.
func (r row) standsIn(e *domain.Evidence) bool {
	switch r.problem {
	case OrphanCharge:
		c, ok := e.Charges[r.event]
		return ok && c.Source == r.at
	case OrphanIntent:
		in := e.Intents[r.event]
		return in != nil && in.Record.Coordinates == r.at
	default:
		p, ok := e.Sightings[r.event]
		return ok && p.Source == r.at
	}
}

// confirm reads the record that a row names once more, where one stands there.
func (a *Auditor) confirm(ctx context.Context, r row) error {
	s := a.spans[r.at.Partition]
	what := "the topic has no record there"
	if s.stands.has(r.at.Offset - s.from) {
		what = "the record there is not of this event"
		if a.rereads < maxReread {
			a.rereads++
			same := false
			err := a.topic.Read(ctx, r.at.Partition, r.at.Offset, r.at.Offset+1, func(records []domain.Record) error {
				for i := range records {
					again := newSubject(&records[i], 0)
					same = same || !again.invalid && again.event.ID == r.event
				}
				return nil
			})
			if err != nil || same {
				return err
			}
		}
	}
	a.found.add(Finding{Problem: r.problem, At: r.at, EventID: r.event, OrderID: r.order, What: what})
	return nil
}
