package app_test

import (
	"io"

	"github.com/google/uuid"

	"example.com/billing/internal/audit"
	"example.com/billing/internal/domain"
)

// tampering changes one thing behind the service's back.
type tampering struct {
	event    order
	sql      []string // $1 is the event's id
	provider func(uuid.UUID, domain.Found) (domain.Found, error)
	want     map[audit.Problem]int64
	others   bool // findings are about other events too
}

func tamperings(h *past) map[string]tampering {
	one := func(p audit.Problem, more ...audit.Problem) map[audit.Problem]int64 {
		want := map[audit.Problem]int64{p: 1}
		for _, p := range more {
			want[p]++
		}
		return want
	}
	some := h.events["captured 7"]
	says := func(change func(*domain.Found)) func(uuid.UUID, domain.Found) (domain.Found, error) {
		return func(id uuid.UUID, found domain.Found) (domain.Found, error) {
			if id == some.id {
				change(&found)
			}
			return found, nil
		}
	}
	stray := func(offset string) string { // a charge of no record
		return `INSERT INTO charge SELECT 'aaaaaaaa-0000-7000-8000-000000000001', 12345, 7, 10.50, 'EUR', 'declined', NULL, NULL, 1, false,
			now(), now(), fingerprint, source_topic, 0, ` + offset + ` FROM charge WHERE event_id = $1`
	}
	aborted := `(SELECT max(source_offset) + 1 FROM processed_event WHERE source_partition = 0)`
	return map[string]tampering{
		"a charge is gone":                 {event: some, sql: []string{`DELETE FROM charge WHERE event_id = $1`}, want: one(audit.Missing, audit.UnrecordedCapture)},
		"a charge has another amount":      {event: some, sql: []string{`UPDATE charge SET amount = 10.51 WHERE event_id = $1`}, want: one(audit.WrongAmount, audit.ProviderWrongAmount)},
		"a charge has another currency":    {event: some, sql: []string{`UPDATE charge SET currency = 'USD' WHERE event_id = $1`}, want: one(audit.WrongAmount, audit.ProviderWrongAmount)},
		"a charge has another order":       {event: some, sql: []string{`UPDATE charge SET order_id = 777 WHERE event_id = $1`}, want: one(audit.WrongCharge, audit.ProviderWrongAmount)},
		"a charge has another customer":    {event: some, sql: []string{`UPDATE charge SET customer_id = 8 WHERE event_id = $1`}, want: one(audit.WrongCharge)},
		"a charge has another meaning":     {event: some, sql: []string{`UPDATE charge SET fingerprint = sha256('x') WHERE event_id = $1`}, want: one(audit.WrongCharge)},
		"a capture became a decline":       {event: some, sql: []string{`UPDATE charge SET status = 'declined', claims_order = false WHERE event_id = $1`}, want: one(audit.UnrecordedCapture)},
		"a decline became a capture":       {event: h.events["declined"], sql: []string{`UPDATE charge SET status = 'captured', claims_order = true WHERE event_id = $1`}, want: one(audit.ProviderWrongStatus)},
		"an event is forgotten":            {event: some, sql: []string{`DELETE FROM processed_event WHERE event_id = $1`}, want: one(audit.Forgotten)},
		"an event is known otherwise":      {event: some, sql: []string{`UPDATE processed_event SET fingerprint = sha256('x') WHERE event_id = $1`}, want: one(audit.Contradiction)},
		"a letter of bad bytes is gone":    {sql: []string{`DELETE FROM dead_letter WHERE reason = 'invalid_json' AND $1::uuid IS NOT NULL`}, want: one(audit.Missing)},
		"a letter of a conflict is gone":   {event: h.events["captured 5"], sql: []string{`DELETE FROM dead_letter WHERE reason = 'conflicting_payload' AND event_id = $1`}, want: one(audit.Missing, audit.UnrecordedCapture)},
		"a letter of an intent is gone":    {event: h.events["order conflict"], sql: []string{`DELETE FROM dead_letter WHERE event_id = $1`}, want: one(audit.MissingLetter)},
		"a letter is closed by hand":       {event: h.events["rejected"], sql: []string{`UPDATE dead_letter SET state = 'discarded' WHERE event_id = $1`}, want: one(audit.Contradiction)},
		"a letter is open beside a charge": {event: h.events["discarded"], sql: []string{`UPDATE dead_letter SET state = 'open' WHERE event_id = $1`}, want: one(audit.Contradiction)},
		"a parked intent is gone":          {event: h.events["rejected"], sql: []string{`DELETE FROM charge_intent WHERE event_id = $1`}, want: one(audit.MissingIntent, audit.WrongCounters)},
		"an unfinished intent is gone":     {event: h.events["pending"], sql: []string{`DELETE FROM charge_intent WHERE event_id = $1`}, want: one(audit.Missing, audit.WrongCounters)},
		"an intent was never claimed":      {event: h.events["pending"], sql: []string{`UPDATE charge_intent SET claimed = false WHERE event_id = $1`}, want: one(audit.OrphanIntent, audit.WrongCounters)},
		"an intent is of no record":        {event: h.events["pending"], sql: []string{`UPDATE charge_intent SET source_partition = 0, source_offset = ` + aborted + ` WHERE event_id = $1`}, want: one(audit.OrphanIntent)},
		"the order of a duplicate is free": {event: h.events["captured 3"], others: true, sql: []string{`DELETE FROM charge WHERE event_id = $1`}, want: one(audit.Missing, audit.UnrecordedCapture, audit.UncoveredOrder)},
		"an order is captured twice": {
			event: h.events["duplicate order"], others: true,
			sql:  []string{`DROP INDEX charge_claims_order`, `UPDATE charge SET status = 'captured', claims_order = true WHERE event_id = $1`},
			want: map[audit.Problem]int64{audit.DoubleCapture: 2, audit.ProviderMissing: 1},
		},
		"a charge of an aborted record":  {event: some, others: true, sql: []string{stray(aborted)}, want: one(audit.OrphanCharge)},
		"a charge of another's record":   {event: some, others: true, sql: []string{stray("0")}, want: one(audit.OrphanCharge)},
		"an event of an aborted record":  {event: some, others: true, sql: []string{`INSERT INTO processed_event SELECT 'aaaaaaaa-0000-7000-8000-000000000001', consumer_group, now(), source_topic, 0, ` + aborted + `, fingerprint FROM processed_event WHERE event_id = $1`}, want: one(audit.OrphanEvent)},
		"an event of another's record":   {event: some, others: true, sql: []string{`INSERT INTO processed_event SELECT 'aaaaaaaa-0000-7000-8000-000000000001', consumer_group, processed_at - interval '1 s', source_topic, source_partition, source_offset, fingerprint FROM processed_event WHERE event_id = $1`}, want: one(audit.OrphanEvent)},
		"a counter is changed":           {sql: []string{`UPDATE dedup_stat SET captured = captured + 1 WHERE (partition, minute) = (SELECT partition, minute FROM dedup_stat LIMIT 1) AND $1::uuid IS NOT NULL`}, want: one(audit.WrongCounters)},
		"both sums are changed":          {sql: []string{`UPDATE dedup_stat SET processed = processed + 1 WHERE (partition, minute) = (SELECT partition, minute FROM dedup_stat LIMIT 1) AND $1::uuid IS NOT NULL`}, want: map[audit.Problem]int64{audit.WrongCounters: 2}},
		"the provider knows nothing":     {event: some, provider: says(func(f *domain.Found) { *f = domain.Found{} }), want: one(audit.ProviderMissing)},
		"the provider captured again":    {event: some, provider: says(func(f *domain.Found) { f.ProviderChargeID += "9" }), want: one(audit.ProviderDouble)},
		"the provider has another order": {event: some, provider: says(func(f *domain.Found) { f.OrderID++ }), want: one(audit.ProviderWrongAmount)},
		"the provider does not say": {
			event: some, want: one(audit.ProviderSilent),
			provider: func(id uuid.UUID, found domain.Found) (domain.Found, error) {
				if id == some.id {
					return found, io.ErrUnexpectedEOF
				}
				return found, nil
			},
		},
		"the provider captured what is parked":          paid(h.events["rejected"], audit.UnrecordedCapture),
		"the provider captured what is unfinished":      paid(h.events["pending"], audit.UnrecordedCapture),
		"the provider captured what was discarded":      paid(h.events["discarded"], audit.UnrecordedCapture),
		"the provider captured both events of an order": paid(h.events["duplicate order"], audit.ProviderDouble),
	}
}

// paid is an event that the provider captured, and we did not.
func paid(o order, want audit.Problem) tampering {
	return tampering{event: o, want: map[audit.Problem]int64{want: 1}, provider: func(id uuid.UUID, found domain.Found) (domain.Found, error) {
		if id == o.id {
			amount, err := domain.ParseMoney(o.amount, o.cur)
			return domain.Found{Known: true, Status: domain.ChargeCaptured, ProviderChargeID: "ch_x", OrderID: o.order, Amount: amount}, err
		}
		return found, nil
	}}
}
