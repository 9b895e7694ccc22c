package orders

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	eventType     = "order.confirmed.v1"
	aggregateType = "Order"
	// instant is RFC 3339 in UTC, to the millisecond.
	instant = "2006-01-02T15:04:05.000"
)

// event is an order as it is told.
type event struct {
	order

	eventID    uuid.UUID
	customerID int64
	at         time.Time
}

// event is the i-th one: always the same.
func (p *Plan) event(i int) event {
	at := p.options.Start.Add(time.Duration(i) * time.Millisecond).UTC()

	return event{order: p.orderAt(i), eventID: newID(at, random(p.options.Seed, streamID, i)), customerID: customer(p.options, i), at: at}
}

// newID makes a UUID version 7 (RFC 9562): 48 bits of milliseconds, then random ones.
func newID(at time.Time, r *rand.Rand) uuid.UUID {
	var id uuid.UUID

	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|r.Uint64()&0xFFFF)
	binary.BigEndian.PutUint64(id[8:], r.Uint64())
	id[6] = id[6]&0x0F | 0x70
	id[8] = id[8]&0x3F | 0x80

	return id
}

// original is the first record of the i-th event.
func (p *Plan) original(i int) Record {
	e := p.event(i)
	r := p.record(e, random(p.options.Seed, streamTrace, i))
	r.Value = fmt.Appendf(nil,
		`{"eventId":"%s","eventType":"%s","occurredAt":"%sZ","aggregateType":"%s","orderId":%d,"customerId":%d,"totalAmount":%s,"currency":"%s"}`,
		e.eventID, eventType, e.at.Format(instant), aggregateType, e.id, e.customerID, e.amount.Decimal(), e.amount.Currency)

	return r
}

// record is what all records of an event have: the key, and a trace of their own.
func (p *Plan) record(e event, r *rand.Rand) Record {
	rec := Record{OrderID: e.id, Key: strconv.AppendInt(nil, e.id, 10)}
	if p.options.Traced {
		rec.Headers = append(rec.Headers, Header{Key: "traceparent", Value: traceparent(r)})
	}

	return rec
}

// traceparent is a sampled W3C trace context; neither of its ids may be zero.
func traceparent(r *rand.Rand) []byte {
	var ids [24]byte
	for i := range 3 {
		binary.BigEndian.PutUint64(ids[i*8:], r.Uint64()|1)
	}

	return fmt.Appendf(nil, "00-%s-%s-01", hex.EncodeToString(ids[:16]), hex.EncodeToString(ids[16:]))
}

// twin is the i-th event once more, as a producer that encodes anew might write it: the fields in another order, white space, an
// id in upper case or in the header, an offset for Z, an amount without its last zeros or as text, a field that nobody knows.
func (p *Plan) twin(i, number int) Record {
	return p.again(p.event(i), Republished, number, random(p.options.Seed, streamTwin, number))
}

// conflict is a record with the id of the i-th event that asks for another amount: nobody is to be charged for it.
func (p *Plan) conflict(i int, r *rand.Rand) Record {
	const most = 1000 // minor units

	e := p.event(i)
	if e.amount.Minor > 1 {
		e.amount.Minor -= 1 + r.Int64N(min(most, e.amount.Minor-1))
	} else {
		e.amount.Minor++
	}

	return p.again(e, Conflicting, i, r)
}

// invalid is a record of the i-th order that says nothing usable: none at all, half of something, no event, no text.
func (p *Plan) invalid(i int, r *rand.Rand) Record {
	rec := p.record(p.event(i), r)
	rec.Kind = Invalid

	switch r.IntN(4) {
	case 0:
		rec.Value = nil
	case 1:
		rec.Value = []byte(`{"eventId":`)
	case 2:
		rec.Value = fmt.Appendf(nil, `{"orderId":%d,"customerId":1,"totalAmount":1.00,"currency":"EUR"}`, rec.OrderID)
	case 3:
		rec.Value = []byte{0xff, 0xfe, byte(r.IntN(256))}
	}

	return rec
}

// again encodes an event anew.
func (p *Plan) again(e event, kind Kind, number int, r *rand.Rand) Record {
	rec := p.record(e, r)
	rec.Kind = kind

	id := e.eventID.String()
	if r.IntN(4) == 0 {
		id = strings.ToUpper(id)
	}

	fields := []string{
		`"eventType":` + quote(eventType),
		`"occurredAt":` + quote(e.at.Format(instant)+oneOf(r, "Z", "+00:00", "000Z")),
		`"orderId":` + strconv.FormatInt(e.id, 10),
		`"customerId":` + strconv.FormatInt(e.customerID, 10),
		`"totalAmount":` + otherAmount(e.amount, r),
		`"currency":` + quote(e.amount.Currency),
	}
	if r.IntN(2) == 0 {
		fields = append(fields, `"aggregateType":`+quote(aggregateType))
	}

	if r.IntN(3) == 0 {
		fields = append(fields, `"note":{"attempt":`+strconv.Itoa(number)+`}`)
	}

	if r.IntN(3) == 0 {
		rec.Headers = append(rec.Headers, Header{Key: "eventId", Value: []byte(id)})
	} else {
		fields = append(fields, `"eventId":`+quote(id))
	}

	r.Shuffle(len(fields), func(a, b int) { fields[a], fields[b] = fields[b], fields[a] })

	// A space at the end at least, so that no shuffle gives the original's bytes.
	gap := oneOf(r, "", " ", "\n  ")
	rec.Value = []byte("{" + gap + strings.Join(fields, ","+gap) + gap + "} ")

	return rec
}

// otherAmount writes the same amount differently where there is another way.
func otherAmount(a Amount, r *rand.Rand) string {
	text := a.Decimal()
	if strings.Contains(text, ".") && r.IntN(2) == 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}

	if r.IntN(4) == 0 {
		return quote(text)
	}

	return text
}

func oneOf(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

// quote is for text that needs no escape.
func quote(text string) string { return `"` + text + `"` }

// Equal reports whether two records have the same key, value and headers.
func (r Record) Equal(other Record) bool {
	if !bytes.Equal(r.Key, other.Key) || !bytes.Equal(r.Value, other.Value) || len(r.Headers) != len(other.Headers) {
		return false
	}

	for i, h := range r.Headers {
		if h.Key != other.Headers[i].Key || !bytes.Equal(h.Value, other.Headers[i].Value) {
			return false
		}
	}

	return true
}
