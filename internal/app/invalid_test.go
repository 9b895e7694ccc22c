package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
)

// bad is a record that can never be charged, and why.
type bad struct {
	name    string
	reason  string
	value   []byte
	headers []kgo.RecordHeader
}

// with returns a valid event with one piece of its text replaced.
func with(old, replacement string) []byte {
	o := newOrder(900_000)
	text := o.json()
	if !strings.Contains(text, old) {
		panic("nothing to replace: " + old)
	}
	return []byte(strings.Replace(text, old, replacement, 1))
}

// withID returns a valid event with another id.
func withID(id string) []byte {
	o := newOrder(900_000)
	return []byte(strings.Replace(o.json(), o.id.String(), id, 1))
}

func badRecords() []bad {
	id := uuid.Must(uuid.NewV7()).String()
	amount, currency := `"totalAmount":10.50`, `"currency":"EUR"`
	return []bad{
		{name: "tombstone", reason: "invalid_tombstone"},
		{name: "empty value", reason: "invalid_empty", value: []byte{}},
		{name: "broken JSON", reason: "invalid_json", value: []byte(`{"eventId":`)},
		{name: "NUL in the JSON", reason: "invalid_json", value: with(`"orderId"`, "\x00\"orderId\"")},
		{name: "NUL escaped in a field", reason: "invalid_currency", value: with(currency, `"currency":"EU\u0000"`)},
		{name: "not an object", reason: "invalid_not_object", value: []byte(`[1]`)},
		{name: "trailing data", reason: "invalid_trailing_data", value: with("}", "} x")},
		{name: "invalid UTF-8", reason: "invalid_utf8", value: with("Order", "Or\xffder")},
		{name: "2 MiB", reason: "invalid_too_large", value: bytes.Repeat([]byte{'x'}, 2<<20)},
		{name: "duplicate key", reason: "invalid_duplicate_key", value: with(currency, currency+","+currency)},
		{name: "wrong case", reason: "invalid_field_case", value: with("eventId", "EventID")},
		{name: "missing field", reason: "invalid_missing_field", value: with(`"customerId":7,`, "")},
		{name: "wrong type", reason: "invalid_wrong_type", value: with(`"orderId":900000`, `"orderId":"900000"`)},
		{name: "1e400", reason: "invalid_amount_too_large", value: with(amount, `"totalAmount":1e400`)},
		{name: "1e999999999", reason: "invalid_amount_too_large", value: with(amount, `"totalAmount":1e999999999`)},
		{name: "0.1e-2", reason: "invalid_amount_precision", value: with(amount, `"totalAmount":0.1e-2`)},
		{name: "3 decimals in EUR", reason: "invalid_amount_precision", value: with(amount, `"totalAmount":10.505`)},
		{name: "a decimal in JPY", reason: "invalid_amount_precision", value: with(amount+","+currency, `"totalAmount":10.5,"currency":"JPY"`)},
		{name: "unknown currency", reason: "invalid_currency", value: with(currency, `"currency":"XYZ"`)},
		{name: "negative", reason: "invalid_amount_not_positive", value: with(amount, `"totalAmount":-10.50`)},
		{name: "zero", reason: "invalid_amount_not_positive", value: with(amount, `"totalAmount":0.00`)},
		{name: "order id 0", reason: "invalid_order_id", value: with(`"orderId":900000`, `"orderId":0`)},
		{name: "order id 2^63", reason: "invalid_order_id", value: with(`"orderId":900000`, `"orderId":9223372036854775808`)},
		{name: "customer id 0", reason: "invalid_customer_id", value: with(`"customerId":7`, `"customerId":0`)},
		{name: "no UUID", reason: "invalid_event_id", value: withID("order-17")},
		{name: "nil UUID", reason: "invalid_event_id", value: withID("00000000-0000-0000-0000-000000000000")},
		{name: "urn:uuid:", reason: "invalid_event_id", value: withID("urn:uuid:" + id)},
		{name: "braced UUID", reason: "invalid_event_id", value: withID("{" + id + "}")},
		{name: "header and body differ", reason: "invalid_event_id_mismatch", value: withID(id), headers: []kgo.RecordHeader{{Key: "eventId", Value: []byte(uuid.Must(uuid.NewV7()).String())}}},
		{name: "header is not text", reason: "invalid_event_id_header", value: withID(id), headers: []kgo.RecordHeader{{Key: "eventId", Value: []byte{0xff, 0xfe}}}},
		{name: "wrong event type", reason: "invalid_event_type", value: with("order.confirmed.v1", "order.cancelled.v1")},
		{name: "wrong aggregate", reason: "invalid_aggregate_type", value: with(`"Order"`, `"Basket"`)},
		{name: "no RFC 3339", reason: "invalid_occurred_at", value: with("2026-11-29T12:00:00Z", "yesterday")},
	}
}

func TestEachBadRecordIsOneDeadLetterAndItsNeighboursAreCharged(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testEachBadRecordIsOneDeadLetterAndItsNeighboursAreCharged)
}

func testEachBadRecordIsOneDeadLetterAndItsNeighboursAreCharged(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 1, paymenttest.Faults{})
	table := badRecords()
	var records []*kgo.Record
	valid := int64(0)
	good := func() {
		valid++
		records = append(records, w.record(0, []byte(newOrder(valid).json())))
	}
	letters := map[int64]bad{}
	for _, b := range table {
		good()
		r := w.record(0, b.value)
		r.Headers = append(slices.Clone(b.headers), kgo.RecordHeader{Key: "other", Value: []byte{0, 0xff}})
		letters[int64(len(records))] = b
		records = append(records, r)
	}
	good()
	w.produce(records...)

	first := w.start(nil)
	w.settled()
	w.requireLetters(letters)
	require.Equal(t, valid, w.provider.Ledger().Captures)
	n := first.stats()
	require.EqualValues(t, len(table), n.Invalid)
	require.EqualValues(t, len(records), n.Received)
	first.Stop()

	// The same records once more: offsets back to the beginning.
	w.rewind()
	second := w.start(nil)
	w.settled()
	w.requireLetters(letters)
	require.Equal(t, valid, w.provider.Ledger().Posts, "nothing is posted again")
	again := second.stats()
	require.EqualValues(t, len(table), again.Invalid, "an invalid record is counted once")
	require.Equal(t, valid, again.Duplicates.Redelivered)
	var page struct {
		Items []struct {
			ID     int64  `json:"id"`
			Reason string `json:"reason"`
		} `json:"items"`
	}
	require.Equal(t, http.StatusOK, second.get("/api/v1/dead-letters?reason=invalid_utf8", &page))
	require.Len(t, page.Items, 1)
	require.Equal(t, http.StatusOK, second.get(fmt.Sprintf("/api/v1/dead-letters/%d", page.Items[0].ID), nil))
}

// requireLetters checks that there is one dead letter for each bad record, with
// its bytes and its reason, and no other.
func (w *world) requireLetters(want map[int64]bad) {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT "offset", reason, value, headers IS NOT NULL FROM dead_letter WHERE topic = $1`, w.topic)
	require.NoError(w.t, err)
	defer rows.Close()
	found := 0
	for rows.Next() {
		var offset int64
		var reason string
		var value []byte
		var headers bool
		require.NoError(w.t, rows.Scan(&offset, &reason, &value, &headers))
		b, ok := want[offset]
		require.True(w.t, ok, "a dead letter at offset %d, where a valid record stands: %s", offset, reason)
		require.Equal(w.t, b.reason, reason, b.name)
		require.Equal(w.t, b.value == nil, value == nil, b.name)
		require.True(w.t, bytes.Equal(b.value, value), "%s: its bytes are kept", b.name)
		require.True(w.t, headers, "%s: its headers are kept", b.name)
		found++
	}
	require.NoError(w.t, rows.Err())
	require.Equal(w.t, len(want), found)
}

// rewind puts the group's offsets back to the beginning, where they are kept, which needs it empty.
func (w *world) rewind() {
	w.t.Helper()
	w.deserted()
	code, _, errs := command(w.t, w.offsetsEnviron(), "offsets", "reset", "--to", "earliest", "--yes")
	require.Zero(w.t, code, errs)
}
