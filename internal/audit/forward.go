package audit

import (
	"context"
	"fmt"

	"example.com/billing/internal/domain"
)

// readTopic finds the terminal record of every offset.
func (a *Auditor) readTopic(ctx context.Context) error {
	var done, most int64
	for _, s := range a.spans {
		most += s.to - s.from
	}
	for _, s := range a.partitions() {
		before := done
		err := a.topic.Read(ctx, s.Partition, s.from, s.to, func(records []domain.Record) error {
			if err := a.take(ctx, s, records); err != nil {
				return err
			}
			a.options.Progress("records", before+records[len(records)-1].Offset+1-s.from, most)
			return nil
		})
		if err != nil {
			return fmt.Errorf("partition %d: %w", s.Partition, err)
		}
		done += s.to - s.from
	}
	return a.settleSuspects(ctx)
}

// take judges a batch; what looks wrong is kept for a second look.
func (a *Auditor) take(ctx context.Context, s *span, records []domain.Record) error {
	subjects := make([]subject, len(records))
	for i := range records {
		subjects[i] = newSubject(&records[i], s.Committed)
		a.notice(s, &records[i])
	}
	verdicts, err := a.look(ctx, subjects)
	if err != nil {
		return err
	}
	for i := range subjects {
		if len(verdicts[i].findings) > 0 {
			a.suspects = append(a.suspects, subjects[i])
			continue
		}
		a.conclude(&subjects[i], verdicts[i])
	}
	if len(a.suspects) >= maxSuspects {
		return a.settleSuspects(ctx)
	}
	return nil
}

// notice marks that a record stands there, and when the oldest one was written.
func (a *Auditor) notice(s *span, r *domain.Record) {
	s.stands.set(r.Offset - s.from)
	s.records++
	if !a.some || r.Timestamp.Before(a.oldest) {
		a.oldest, a.some = r.Timestamp, true
	}
}

// look judges subjects by the evidence as it is now.
func (a *Auditor) look(ctx context.Context, subjects []subject) ([]verdict, error) {
	ids, at := keys(subjects)
	evidence, err := a.books.Evidence(ctx, a.options.Group, ids, at)
	if err != nil {
		return nil, err
	}
	var orders []int64
	for i := range subjects {
		if c, ok := evidence.Charges[subjects[i].event.ID]; ok && c.Status == domain.ChargeDuplicateOrder {
			orders = append(orders, c.OrderID)
		}
	}
	_, holders, err := a.books.CapturesOf(ctx, orders)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(subjects))
	for i := range subjects {
		f := gather(&subjects[i], &evidence, holders)
		verdicts[i] = a.judge.record(f)
		a.account(f)
	}
	return verdicts, nil
}

// account marks which rows name this record as their own.
func (a *Auditor) account(f facts) {
	s := a.spans[f.at.Partition]
	n := f.at.Offset - s.from
	if f.charge != nil && f.charge.Source == f.at || f.intent != nil && f.intent.Record.Coordinates == f.at {
		s.charged.set(n)
	}
	if f.sighting != nil && f.sighting.Source == f.at {
		s.claimed.set(n)
	}
}

// conclude counts a record by its terminal record.
func (a *Auditor) conclude(s *subject, v verdict) {
	a.kinds[v.kind]++
	a.found.add(v.findings...)
	a.options.Each(Outcome{At: s.at, Event: s.event, Kind: v.kind, First: v.first})
}

// settleSuspects gives what looked wrong time to become right, and looks again.
func (a *Auditor) settleSuspects(ctx context.Context) error {
	if len(a.suspects) == 0 {
		return nil
	}
	if err := a.pause(ctx); err != nil {
		return err
	}
	const batch = 1000
	a.judge.now = a.clock.Now()
	for from := 0; from < len(a.suspects); from += batch {
		subjects := a.suspects[from:min(from+batch, len(a.suspects))]
		verdicts, err := a.look(ctx, subjects)
		if err != nil {
			return err
		}
		for i := range subjects {
			a.askAboutMissing(ctx, &verdicts[i])
			a.conclude(&subjects[i], verdicts[i])
		}
	}
	a.suspects = a.suspects[:0]
	return nil
}

// since is where to begin in tables that are read in the order of time: rows
// of the range are not older than its oldest record.
func (a *Auditor) since() domain.Mark {
	if !a.options.partial() || a.oldest.IsZero() {
		return domain.Mark{}
	}
	return domain.Mark{At: a.oldest.Add(-margin)}
}
