package audit

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// skew is by how much clocks may differ before a row of processed_event must be there.
const skew = time.Hour

// verdict is what was found out about one record.
type verdict struct {
	kind     Kind
	first    domain.Coordinates // of a duplicate: where its event was first seen
	findings []Finding
}

// judge holds records against evidence.
type judge struct {
	now       time.Time
	retention time.Duration // of processed_event
}

// facts are one record and what is known of it.
type facts struct {
	*subject
	charge   *domain.Charge
	intent   *domain.Intent
	letter   *domain.Letter // at the record's coordinates
	sighting *domain.Sighting
	holders  map[int64]domain.Charge // of the orders of duplicate_order charges
}

func gather(s *subject, e *domain.Evidence, holders map[int64]domain.Charge) facts {
	f := facts{subject: s, holders: holders}
	if l, ok := e.Letters[s.at]; ok {
		f.letter = &l
	}
	if s.invalid {
		return f
	}
	if c, ok := e.Charges[s.event.ID]; ok {
		f.charge = &c
	}
	if p, ok := e.Sightings[s.event.ID]; ok {
		f.sighting = &p
	}
	f.intent = e.Intents[s.event.ID]
	return f
}

// record decides which terminal record a record has, and what is wrong with it.
func (j *judge) record(f facts) verdict {
	switch {
	case f.invalid:
		return f.unreadable()
	case f.charge != nil && f.charge.Source == f.at:
		return j.charged(f)
	case f.charge == nil && f.intent != nil && f.intent.Record.Coordinates == f.at:
		return j.open(f)
	case f.letter != nil && !f.recovered():
		return f.lettered()
	}
	return f.repeated()
}

// recovered: a letter of an invalid record that became valid and went its way.
func (f *facts) recovered() bool {
	return f.letter.EventID == uuid.Nil &&
		(f.letter.State == domain.LetterReplayed || f.letter.State == domain.LetterResolved)
}

// unreadable: a record that holds no valid event has a dead letter.
func (f *facts) unreadable() verdict {
	if f.letter == nil {
		return f.unexplained("it holds no valid event and has no dead letter")
	}
	return verdict{kind: closedOr(f.letter, Parked)}
}

// closedOr tells the end of a letter: closed by an operator, or still open.
func closedOr(l *domain.Letter, open Kind) Kind {
	if l.State == domain.LetterOpen {
		return open
	}
	return Discarded
}

// unexplained: no terminal record, which is a finding below the group's position.
func (f *facts) unexplained(what string) verdict {
	if !f.reached {
		return verdict{kind: NotYetReached}
	}
	return verdict{kind: Unexplained, findings: []Finding{f.about(Missing, "%s", what)}}
}

// charged: the record that was charged, or ended without a charge.
func (j *judge) charged(f facts) verdict {
	v := verdict{kind: kindOf(f.charge.Status), findings: f.agree()}
	if f.intent != nil {
		v.add(f.about(Contradiction, "final as %s, and an intent in state %s", f.charge.Status, f.intent.State))
	}
	if f.letter != nil && f.letter.State == domain.LetterOpen {
		v.add(f.about(Contradiction, "final as %s, and an open dead letter %s", f.charge.Status, f.letter.Reason))
	}
	if holder, taken := f.holders[f.event.OrderID]; f.charge.Status == domain.ChargeDuplicateOrder &&
		(!taken || holder.EventID == f.event.ID) {
		v.add(f.about(UncoveredOrder, "ended as duplicate_order, but no charge claims the order"))
	}
	v.add(j.remembered(f)...)
	return v
}

func (v *verdict) add(found ...Finding) { v.findings = append(v.findings, found...) }

// agree compares the charge with the record that it was made from.
func (f *facts) agree() (found []Finding) {
	c := f.charge
	if !sameMoney(c.Amount, f.event.Total) {
		found = append(found, f.about(WrongAmount, "charge has %s, the record %s", c.Amount, f.event.Total))
	}
	switch {
	case c.OrderID != f.event.OrderID:
		found = append(found, f.about(WrongCharge, "charge is of order %d, the record of order %d", c.OrderID, f.event.OrderID))
	case c.CustomerID != f.event.CustomerID:
		found = append(found, f.about(WrongCharge, "charge is of customer %d, the record of customer %d", c.CustomerID, f.event.CustomerID))
	case c.Fingerprint != f.fingerprint:
		found = append(found, f.about(WrongCharge, "charge was made from an event of another meaning (fingerprints differ)"))
	}
	return found
}

// sameMoney compares amounts by value: 10.5 is 10.50.
func sameMoney(a, b domain.Money) bool {
	return a.Currency().Code() == b.Currency().Code() && plain(a) == plain(b)
}

func plain(m domain.Money) string {
	text := m.Decimal()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// remembered: a claimed event stands in processed_event until the retention has passed.
func (j *judge) remembered(f facts) []Finding {
	switch {
	case f.sighting != nil && f.sighting.Fingerprint != f.fingerprint:
		return []Finding{f.about(Contradiction, "processed_event knows the event with another meaning")}
	case f.sighting != nil, !f.reached, !f.age().After(j.now.Add(skew - j.retention)):
		return nil
	}
	return []Finding{f.about(Forgotten, "not in processed_event, though younger than the retention of %s", j.retention)}
}

// open: the record whose charge is not final.
func (j *judge) open(f facts) verdict {
	in := f.intent
	switch {
	case in.State.Dead():
		v := verdict{kind: Parked, findings: j.remembered(f)}
		if f.letter == nil {
			v.add(f.about(MissingLetter, "its intent is %s, and there is no dead letter", in.State))
		} else if f.letter.State != domain.LetterOpen {
			v.add(f.about(Contradiction, "its intent is %s, and its dead letter %s", in.State, f.letter.State))
		}
		return v
	case in.Claimed:
		return verdict{kind: Unfinished, findings: j.remembered(f)}
	case !f.reached:
		return verdict{kind: NotYetReached}
	case in.LeaseUntil.After(j.now):
		return verdict{kind: Unfinished}
	}
	return verdict{kind: Unexplained, findings: []Finding{
		f.about(OrphanIntent, "the offset is committed, its intent is %s and was never claimed", in.State),
	}}
}

// lettered: a record that has a dead letter and was not charged itself.
func (f *facts) lettered() verdict {
	l := f.letter
	if l.Reason == domain.ReasonConflictingPayload || l.EventID == uuid.Nil {
		return verdict{kind: closedOr(l, Parked)} // the letter stands for itself
	}
	v := verdict{kind: closedOr(l, Parked)}
	if f.charge == nil && f.intent == nil {
		v.add(f.about(MissingIntent, "dead letter %s (%s), and neither an intent nor a charge", l.Reason, l.State))
	}
	return v
}

// repeated: a record that only repeats an event, or has nothing at all.
func (f *facts) repeated() verdict {
	const unlettered = "the event is known with another meaning, and this record has no dead letter"
	switch {
	case f.charge != nil && f.charge.Fingerprint != f.fingerprint:
		return f.unexplained(unlettered)
	case f.charge != nil:
		return verdict{kind: Duplicate, first: f.charge.Source}
	case f.intent != nil && f.intent.Fingerprint != f.fingerprint:
		return f.unexplained(unlettered)
	case f.intent != nil && f.intent.Claimed:
		return verdict{kind: Duplicate, first: f.intent.Record.Coordinates}
	case f.sighting != nil:
		return f.unexplained("processed_event knows it, and there is neither a charge nor an intent nor a dead letter")
	}
	return f.unexplained("neither a charge nor an intent nor a dead letter, and processed_event does not know it")
}
