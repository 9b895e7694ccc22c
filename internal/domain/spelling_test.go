package domain_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/billing/internal/domain"
)

// An event may be spelt in many ways. None of them may change what is charged,
// nor make a republished event look like another one.
func TestNoSpellingChangesTheEvent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawEvent(t)
		rec := drawSpelling(t, want)
		event, err := domain.Decoder{}.Decode(rec)
		require.NoError(t, err, "%s", rec.Value)
		require.Equal(t, want, event, "%s", rec.Value)
		require.Equal(t, want.Fingerprint(), event.Fingerprint())
	})
}

// One byte changed, dropped or doubled makes another event or none, and never
// the same id with a meaning that decoding passes over in silence.
func TestADamagedValueIsAnEventOrAFault(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rec := drawSpelling(t, drawEvent(t))
		at := rapid.IntRange(0, len(rec.Value)-1).Draw(t, "at")
		damage := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "damage")
		rec.Value = append(append(append([]byte{}, rec.Value[:at]...), damage...), rec.Value[at+1:]...)
		checkDecode(t, rec)
	})
}

func drawEvent(t *rapid.T) domain.Event {
	code := rapid.SampledFrom([]string{"JPY", "EUR", "USD", "KWD", "CLF"}).Draw(t, "currency")
	cur, err := domain.ParseCurrency(code)
	require.NoError(t, err)
	most := new(big.Int).Sub(power(15+cur.Exponent()), big.NewInt(1)).Uint64()
	total, err := domain.NewMoney(rapid.Uint64Range(1, most).Draw(t, "minor"), code)
	require.NoError(t, err)
	id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	id[6] = id[6]&0x0f | rapid.ByteRange(1, 8).Draw(t, "version")<<4
	id[8] = id[8]&0x3f | 0x80
	return domain.Event{
		ID: id,
		// Days beside the first and last leave room for time zones.
		OccurredAt: time.Unix(rapid.Int64Range(-62135500000, 253402200000).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC(),
		OrderID:    rapid.Int64Range(1, 1<<63-1).Draw(t, "orderId"),
		CustomerID: rapid.Int64Range(1, 1<<63-1).Draw(t, "customerId"),
		Total:      total,
	}
}

// drawSpelling writes an event in one of its many ways.
func drawSpelling(t *rapid.T, event domain.Event) *domain.Record {
	zone := time.FixedZone("", 60*rapid.IntRange(-1439, 1439).Draw(t, "zone"))
	members := []string{
		member(t, "eventType", quote(t, domain.EventTypeOrderConfirmed)),
		member(t, "occurredAt", quote(t, event.OccurredAt.In(zone).Format(time.RFC3339Nano))),
		member(t, "orderId", strconv.FormatInt(event.OrderID, 10)),
		member(t, "customerId", strconv.FormatInt(event.CustomerID, 10)),
		member(t, "totalAmount", drawAmount(t, event.Total)),
		member(t, "currency", quote(t, event.Total.Currency().Code())),
	}
	id := event.ID.String()
	if rapid.Bool().Draw(t, "upper-case id") {
		id = strings.ToUpper(id)
	}
	rec := &domain.Record{}
	place := rapid.SampledFrom([]string{"body", "header", "both"}).Draw(t, "place of the id")
	if place != "header" {
		members = append(members, member(t, "eventId", quote(t, id)))
	}
	if place != "body" {
		rec.Headers = append(rec.Headers, idHeader(event.ID.String()))
	}
	if rapid.Bool().Draw(t, "aggregateType") {
		members = append(members, member(t, "aggregateType", quote(t, "Order")))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "unknown fields") {
		members = append(members, member(t, "x"+strconv.Itoa(i), drawAnything(t)))
	}
	members = rapid.Permutation(members).Draw(t, "order")
	rec.Value = []byte(space(t) + "{" + strings.Join(members, ",") + "}" + space(t))
	return rec
}

// drawAmount writes money as a number or a string, with or without zeros at its
// end and an exponent.
func drawAmount(t *rapid.T, amount domain.Money) string {
	literal := amount.Decimal()
	switch rapid.IntRange(0, 3).Draw(t, "amount") {
	case 0:
		literal = fmt.Sprintf("%de-%d", amount.Minor(), amount.Currency().Exponent())
	case 1:
		if strings.Contains(literal, ".") {
			literal = strings.TrimSuffix(strings.TrimRight(literal, "0"), ".")
		}
	case 2:
		if !strings.Contains(literal, ".") {
			literal += "."
		}
		literal += strings.Repeat("0", rapid.IntRange(1, 50).Draw(t, "zeros"))
	}
	if rapid.Bool().Draw(t, "in a string") {
		return quote(t, literal)
	}
	return literal
}

func drawAnything(t *rapid.T) string {
	text, err := json.Marshal(rapid.String().Draw(t, "text"))
	require.NoError(t, err)
	return rapid.SampledFrom([]string{
		"null", "true", "1e999999999", "[]", `{"eventId":0,"EventID":[{}]}`, `[1,[2,{"orderId":"x"}]]`, string(text),
	}).Draw(t, "anything")
}

// member writes a member with white space wherever JSON allows it.
func member(t *rapid.T, name, raw string) string {
	return space(t) + quote(t, name) + space(t) + ":" + space(t) + raw + space(t)
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n"}).Draw(t, "space")
}

// quote writes a text of ASCII letters as a JSON string, some of them escaped.
func quote(t *rapid.T, text string) string {
	escaped := rapid.IntRange(-3*len(text), len(text)-1).Draw(t, "escaped")
	if escaped < 0 {
		return `"` + text + `"`
	}
	return fmt.Sprintf(`"%s\u%04x%s"`, text[:escaped], text[escaped], text[escaped+1:])
}

// FuzzDecode holds Decode to what it promises for any bytes.
func FuzzDecode(f *testing.F) {
	for _, bad := range badRecords() {
		header, _ := bad.record.Header("eventId")
		if len(bad.record.Value) < 4096 {
			f.Add(bad.record.Value, header)
		}
	}
	f.Add([]byte(goodValue), []byte(nil))
	f.Add([]byte(without("eventId")), []byte(goodID))
	f.Fuzz(func(t *testing.T, value, header []byte) {
		rec := &domain.Record{Value: value}
		if header != nil {
			rec.Headers = []domain.Header{{Key: "eventId", Value: header}}
		}
		checkDecode(t, rec)
	})
}

// checkDecode checks what holds for every record: it is a valid event that its
// own canonical spelling stands for too, or a fault that says why and no more.
func checkDecode(t require.TestingT, rec *domain.Record) {
	before := string(rec.Value)
	event, err := domain.Decoder{}.Decode(rec)
	require.Equal(t, before, string(rec.Value), "the record's bytes are left alone")
	if err != nil {
		var fault *domain.InvalidError
		require.ErrorAs(t, err, &fault)
		require.True(t, fault.Reason.Valid(), fault.Reason)
		require.NotEmpty(t, fault.Detail)
		require.LessOrEqual(t, len(fault.Detail), domain.MaxDetailBytes)
		require.Equal(t, domain.Event{}, event)
		_, again := domain.Decoder{}.Decode(rec)
		require.Equal(t, err, again)
		return
	}
	require.True(t, json.Valid(rec.Value))
	require.Positive(t, event.OrderID)
	require.Positive(t, event.CustomerID)
	require.Positive(t, event.Total.Minor())
	require.Equal(t, time.UTC, event.OccurredAt.Location())
	again, err := domain.Decoder{}.Decode(record(canonical(event)))
	require.NoError(t, err)
	require.Equal(t, event, again)
	require.Equal(t, event.Fingerprint(), again.Fingerprint())
}

// canonical writes an event in one way.
func canonical(event domain.Event) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"occurredAt":%q,"orderId":%d,"customerId":%d,"totalAmount":%s,"currency":%q}`,
		event.ID, domain.EventTypeOrderConfirmed, event.OccurredAt.Format(time.RFC3339Nano),
		event.OrderID, event.CustomerID, event.Total.Decimal(), event.Total.Currency().Code())
}
