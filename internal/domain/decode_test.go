package domain_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

const goodID = "0198f3a1-5b6c-7d8e-9f01-23456789abcd"

const goodValue = `{"eventId":"` + goodID + `","eventType":"order.confirmed.v1",` +
	`"occurredAt":"2026-01-02T03:04:05.678Z","aggregateType":"Order","orderId":42,"customerId":7,` +
	`"totalAmount":10.50,"currency":"EUR"}`

// canary stands for whatever a payload may hold that must not be logged.
const canary = "CANARY"

func goodEvent(t *testing.T) domain.Event {
	t.Helper()
	return domain.Event{
		ID:         uuid.MustParse(goodID),
		OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
		OrderID:    42,
		CustomerID: 7,
		Total:      money(t, 1050, "EUR"),
	}
}

// with returns the good value with one piece of text replaced.
func with(pieces ...string) string {
	value := goodValue
	for i := 0; i < len(pieces); i += 2 {
		if !strings.Contains(value, pieces[i]) {
			panic("the good value does not contain " + pieces[i])
		}
		value = strings.Replace(value, pieces[i], pieces[i+1], 1)
	}
	return value
}

// withField returns the good value with the raw value of one field replaced.
func withField(field, raw string) string {
	return with(fieldText(field), `"`+field+`":`+raw)
}

// without returns the good value without one field.
func without(field string) string {
	if text := fieldText(field) + ","; strings.Contains(goodValue, text) {
		return with(text, "")
	}
	return with(","+fieldText(field), "")
}

// fieldText returns the member of a field as it stands in the good value.
func fieldText(field string) string {
	_, rest, found := strings.Cut(goodValue, `"`+field+`":`)
	if !found {
		panic("no field " + field)
	}
	return `"` + field + `":` + rest[:strings.IndexAny(rest, ",}")]
}

func record(value string, headers ...domain.Header) *domain.Record {
	return &domain.Record{Value: []byte(value), Headers: headers}
}

func idHeader(value string) domain.Header {
	return domain.Header{Key: "eventId", Value: []byte(value)}
}

func TestDecodeReadsEveryField(t *testing.T) {
	t.Parallel()
	rec := record(goodValue, domain.Header{Key: "traceparent", Value: []byte(trace00)},
		domain.Header{Key: "tracestate", Value: []byte("congo=1")})
	event, err := domain.Decoder{}.Decode(rec)
	require.NoError(t, err)
	want := goodEvent(t)
	want.TraceParent, want.TraceState = trace00, "congo=1"
	require.Equal(t, want, event)
	require.Equal(t, goodValue, string(rec.Value), "the record's bytes are left alone")
}

func TestDecodeKeepsNoReferenceToTheRecord(t *testing.T) {
	t.Parallel()
	rec := record(goodValue, domain.Header{Key: "traceparent", Value: []byte(trace00)})
	event, err := domain.Decoder{}.Decode(rec)
	require.NoError(t, err)
	clear(rec.Value)
	clear(rec.Headers[0].Value)
	want := goodEvent(t)
	want.TraceParent = trace00
	require.Equal(t, want, event)
}

func TestDecodeTakesOtherSpellingsOfTheSameEvent(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string]*domain.Record{
		"no aggregateType":            record(without("aggregateType")),
		"10.5 for 10.50":              record(withField("totalAmount", "10.5")),
		"an amount in a string":       record(withField("totalAmount", `"10.50"`)),
		"an amount with an exponent":  record(withField("totalAmount", "1.05e1")),
		"an escaped amount":           record(withField("totalAmount", `"10\u002e50"`)),
		"zeros without meaning":       record(withField("totalAmount", "10.5000000000000000000000")),
		"an upper-case event id":      record(withField("eventId", `"`+strings.ToUpper(goodID)+`"`)),
		"the id in the header":        record(without("eventId"), idHeader(goodID)),
		"an upper-case header":        record(without("eventId"), idHeader(strings.ToUpper(goodID))),
		"the id in both":              record(goodValue, idHeader(goodID)),
		"the id in both, other case":  record(goodValue, idHeader(strings.ToUpper(goodID))),
		"the same header twice":       record(without("eventId"), idHeader(goodID), idHeader(strings.ToUpper(goodID))),
		"an eventid header of others": record(goodValue, domain.Header{Key: "eventid", Value: []byte{0xff}}),
		"headers of any bytes":        record(goodValue, domain.Header{Key: "\xff\x00", Value: []byte{0, 255}}, domain.Header{Key: "nil"}),
		"a broken traceparent":        record(goodValue, domain.Header{Key: "traceparent", Value: []byte("00-\x00")}),
		"+00:00 for Z":                record(withField("occurredAt", `"2026-01-02T03:04:05.678+00:00"`)),
		"-00:00 for Z":                record(withField("occurredAt", `"2026-01-02T03:04:05.678-00:00"`)),
		"another time zone":           record(withField("occurredAt", `"2026-01-02T08:34:05.678+05:30"`)),
		"lower-case t and z":          record(withField("occurredAt", `"2026-01-02t03:04:05.678z"`)),
		"nanoseconds":                 record(withField("occurredAt", `"2026-01-02T03:04:05.678000000Z"`)),
		"digits below the nanosecond": record(withField("occurredAt", `"2026-01-02T03:04:05.6780000009999Z"`)),
		"escaped names":               record(with("eventType", `event\u0054ype`)),
		"escaped text":                record(with("order.confirmed.v1", `order\u002econfirmed.v1`)),
		"white space":                 record(" \t\r\n" + with(",", " ,\n ", ":", "\t: ") + "\r\n\t "),
		"unknown fields":              record(with("{", `{"":0,"x":{"eventId":1,"EventID":[null]},"y":"\u0000","é":"日本",`)),
		"a name that is longer":       record(with("{", `{"eventIds":1,"event":2,"_eventId":3,`)),
		"a very large unknown number": record(with("{", `{"x":1e999999999,`)),
		"a key of other bytes":        {Value: []byte(goodValue), Key: []byte{0xff}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := domain.Decoder{RequireV7: true}.Decode(rec)
			require.NoError(t, err)
			want := goodEvent(t)
			require.Equal(t, want, event)
			require.Equal(t, want.Fingerprint(), event.Fingerprint())
		})
	}
}

func TestDecodeAtTheEdges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string
		want  func(*domain.Event)
	}{
		"the smallest ids": {with("42", "1", ":7,", ":1,"), func(e *domain.Event) { e.OrderID, e.CustomerID = 1, 1 }},
		"the largest ids": {
			with("42", "9223372036854775807", ":7,", ":9223372036854775807,"),
			func(e *domain.Event) { e.OrderID, e.CustomerID = 1<<63-1, 1<<63-1 },
		},
		"a UUID version 4": {with(goodID, "7d444840-9dc0-41d1-b245-5ffdce74fad2"), func(e *domain.Event) {
			e.ID = uuid.MustParse("7d444840-9dc0-41d1-b245-5ffdce74fad2")
		}},
		"a value of exactly a mebibyte": {
			goodValue + strings.Repeat(" ", domain.MaxValueBytes-len(goodValue)), func(*domain.Event) {},
		},
		"the first instant": {
			withField("occurredAt", `"0001-01-01T00:00:00Z"`),
			func(e *domain.Event) { e.OccurredAt = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC) },
		},
		"the last instant": {
			withField("occurredAt", `"9999-12-31T23:59:59.999999999Z"`),
			func(e *domain.Event) { e.OccurredAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC) },
		},
		"a leap second": {
			withField("occurredAt", `"2016-12-31T23:59:60.25Z"`),
			func(e *domain.Event) { e.OccurredAt = time.Date(2017, 1, 1, 0, 0, 0, 250_000_000, time.UTC) },
		},
		"a leap second elsewhere": {
			withField("occurredAt", `"1990-12-31T15:59:60-08:00"`),
			func(e *domain.Event) { e.OccurredAt = time.Date(1991, 1, 1, 0, 0, 0, 0, time.UTC) },
		},
		"a leap day": {
			withField("occurredAt", `"2024-02-29T00:00:00Z"`),
			func(e *domain.Event) { e.OccurredAt = time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC) },
		},
		"yen without decimals": {
			with("10.50", "100.00", "EUR", "JPY"), func(e *domain.Event) { e.Total = money(t, 100, "JPY") },
		},
		"three decimals of dinars": {
			with("10.50", "1.234", "EUR", "KWD"), func(e *domain.Event) { e.Total = money(t, 1234, "KWD") },
		},
		"the largest amount": {
			with("10.50", "999999999999999.9999", "EUR", "CLF"),
			func(e *domain.Event) { e.Total = money(t, 9_999_999_999_999_999_999, "CLF") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event, err := domain.Decoder{}.Decode(record(tc.value))
			require.NoError(t, err)
			want := goodEvent(t)
			tc.want(&want)
			require.Equal(t, want, event)
		})
	}
}

func TestDecodeRequiresVersion7WhenTold(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"7d444840-9dc0-41d1-b245-5ffdce74fad2", "1ec9414c-232a-6b00-b3c8-9e6bdeced846"} {
		value := with(goodID, id)
		event, err := domain.Decoder{}.Decode(record(value))
		require.NoError(t, err)
		require.False(t, event.IsV7())
		_, err = domain.Decoder{RequireV7: true}.Decode(record(value))
		requireReason(t, domain.ReasonEventIDNotV7, err, id)
	}
}

func TestDecodeGivesEachBadRecordItsOwnReason(t *testing.T) {
	t.Parallel()
	covered := map[domain.Reason]bool{domain.ReasonUnstorable: true, domain.ReasonEventIDNotV7: true}
	for _, tc := range badRecords() {
		covered[tc.reason] = true
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			event, err := domain.Decoder{}.Decode(tc.record)
			require.Equal(t, domain.Event{}, event)
			var fault *domain.InvalidError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, tc.reason, fault.Reason, fault.Error())
			require.Equal(t, tc.field, fault.Field, fault.Error())
			requireSane(t, fault)
			_, again := domain.Decoder{}.Decode(tc.record)
			require.Equal(t, err, again, "a redelivery has the same reason")
		})
	}
	for _, reason := range domain.Reasons() {
		if strings.HasPrefix(string(reason), "invalid_") {
			require.True(t, covered[reason], "no record of the table is %s", reason)
		}
	}
}

// Faults are listed in the order of their checks; a record with all the later
// ones is called by the first.
func TestDecodeReportsTheFirstFaultOfItsOrder(t *testing.T) {
	t.Parallel()
	faults := []struct {
		reason      domain.Reason
		field, with string
	}{
		{domain.ReasonEventType, "eventType", `"order.cancelled.v1"`},
		{domain.ReasonEventID, "eventId", `"x"`},
		{domain.ReasonAggregateType, "aggregateType", `"Cart"`},
		{domain.ReasonOccurredAt, "occurredAt", `"today"`},
		{domain.ReasonOrderID, "orderId", `0`},
		{domain.ReasonCustomerID, "customerId", `0`},
		{domain.ReasonCurrency, "currency", `"XXX"`},
		{domain.ReasonAmountNotPositive, "totalAmount", `0`},
	}
	value := goodValue
	for _, fault := range slices.Backward(faults) {
		value = strings.Replace(value, fieldText(fault.field), `"`+fault.field+`":`+fault.with, 1)
		_, err := domain.Decoder{}.Decode(record(value))
		requireReason(t, fault.reason, err, value)
	}
	for _, whole := range []struct {
		reason domain.Reason
		value  string
	}{
		{domain.ReasonFieldCase, `{"ORDERID":1,` + value[1:]},
		{domain.ReasonTrailingData, `{"ORDERID":1,` + value[1:] + "x"},
		{domain.ReasonDuplicateKey, `{"ORDERID":1,"x":1,"x":2,` + value[1:] + "x"},
		{domain.ReasonJSON, `{"ORDERID":1,,"x":1,"x":2,` + value[1:] + "x"},
		{domain.ReasonUTF8, `{"ORDERID":1,,"x":1,"x":2,` + value[1:] + "\xff"},
		{domain.ReasonTooLarge, strings.Repeat("\xff", domain.MaxValueBytes+1)},
	} {
		_, err := domain.Decoder{}.Decode(record(whole.value, idHeader("x")))
		requireReason(t, whole.reason, err, "%s", whole.reason)
	}
}

// requireSane checks what every fault promises to logs and dead letters.
func requireSane(t require.TestingT, fault *domain.InvalidError) {
	require.True(t, fault.Reason.Valid(), fault.Reason)
	require.NotEmpty(t, fault.Detail)
	require.LessOrEqual(t, len(fault.Detail), domain.MaxDetailBytes)
	require.True(t, utf8.ValidString(fault.Detail))
	require.NotContains(t, fault.Error(), canary, "a fault holds nothing of the payload")
}

func TestAHeaderThatIsNoTextIsToldFromOneThatIsNoUUID(t *testing.T) {
	t.Parallel()
	for value, detail := range map[string]string{
		"\xff\xfe": "the header is not text", "x": "the header is not a UUID of 36 characters",
	} {
		_, err := domain.Decoder{}.Decode(record(goodValue, idHeader(value)))
		require.EqualError(t, err, "invalid_event_id_header: eventId: "+detail)
	}
}
