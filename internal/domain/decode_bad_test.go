package domain_test

import (
	"strings"

	"example.com/billing/internal/domain"
)

// badRecord is a record that can never be processed, and what it is called.
type badRecord struct {
	name   string
	record *domain.Record
	reason domain.Reason
	field  string
}

// badRecords is the table of what producers get wrong.
func badRecords() []badRecord {
	var all []badRecord
	for _, part := range [][]badRecord{badWholes(), badNames(), badIDs(), badHeaders(), badTimes(), badNumbers(), badMoney()} {
		all = append(all, part...)
	}
	return all
}

func badWholes() []badRecord {
	bad := func(name string, reason domain.Reason, value string) badRecord {
		return badRecord{name, record(value), reason, ""}
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	return []badRecord{
		{"a tombstone", &domain.Record{}, domain.ReasonTombstone, ""},
		{"a tombstone with an id", &domain.Record{Headers: []domain.Header{idHeader(goodID)}}, domain.ReasonTombstone, ""},
		bad("an empty value", domain.ReasonEmpty, ""),
		bad("white space only", domain.ReasonEmpty, " \t\r\n"),
		bad("a value of 2 MiB", domain.ReasonTooLarge, strings.Repeat(canary, 2<<20/len(canary))),
		bad("a valid value of a byte too many", domain.ReasonTooLarge,
			goodValue+strings.Repeat(" ", domain.MaxValueBytes+1-len(goodValue))),
		bad("invalid UTF-8 in a field", domain.ReasonUTF8, with("EUR", "EU\xff")),
		bad("invalid UTF-8 in an unknown field", domain.ReasonUTF8, with("{", "{\"x\":\"\xc3\x28"+canary+`",`)),
		bad("a surrogate in UTF-8", domain.ReasonUTF8, with("{", "{\"x\":\"\xed\xa0\x80\",")),
		bad("an overlong NUL", domain.ReasonUTF8, with("{", "{\"x\":\"\xc0\x80\",")),
		bad("UTF-16", domain.ReasonUTF8, "\xff\xfe{\x00}\x00"),
		bad("a byte order mark", domain.ReasonJSON, "\ufeff"+goodValue),
		bad("NUL bytes", domain.ReasonJSON, "\x00\x00\x00"),
		bad("a NUL behind it", domain.ReasonTrailingData, goodValue+"\x00"),
		bad("a NUL within a string", domain.ReasonJSON, with("EUR", "EU\x00")),
		bad("a line break within a string", domain.ReasonJSON, with("EUR", "EU\n")),
		bad("half a surrogate pair", domain.ReasonJSON, with("{", `{"x":"\ud800",`)),
		bad("broken JSON", domain.ReasonJSON, `{"eventId":"`+canary),
		bad("cut off", domain.ReasonJSON, goodValue[:len(goodValue)-1]),
		bad("broken below a name of the payload", domain.ReasonJSON, `{"`+canary+`":{"`+canary+`":`+canary+`}}`),
		bad("text", domain.ReasonJSON, canary),
		bad("XML", domain.ReasonJSON, "<order>"+canary+"</order>"),
		bad("a trailing comma", domain.ReasonJSON, with("}", ",}")),
		bad("a missing comma", domain.ReasonJSON, with(",", " ")),
		bad("a missing colon", domain.ReasonJSON, with(":", " ")),
		bad("single quotes", domain.ReasonJSON, strings.ReplaceAll(goodValue, `"`, `'`)),
		bad("a comment", domain.ReasonJSON, with("{", "{/* "+canary+" */")),
		bad("a name without quotes", domain.ReasonJSON, with("{", "{"+canary+":1,")),
		bad("a name that is a number", domain.ReasonJSON, with("{", "{1:1,")),
		bad("a bad escape", domain.ReasonJSON, with("EUR", `EU\x`)),
		bad("NaN", domain.ReasonJSON, withField("totalAmount", "NaN")),
		bad("a leading plus", domain.ReasonJSON, withField("totalAmount", "+10.50")),
		bad("a leading zero", domain.ReasonJSON, withField("totalAmount", "010.50")),
		bad("a point without digits", domain.ReasonJSON, withField("totalAmount", "10.")),
		bad("a hexadecimal number", domain.ReasonJSON, withField("orderId", "0x2a")),
		bad("a Confluent schema id before it", domain.ReasonJSON, "\x00\x00\x00\x00\x01"+goodValue),
		bad("too deep", domain.ReasonJSON, with("{", `{"x":`+deep+`,`)),
		bad("another object behind it", domain.ReasonTrailingData, goodValue+goodValue),
		bad("a bracket behind it", domain.ReasonTrailingData, goodValue+"}"),
		bad("text behind it", domain.ReasonTrailingData, goodValue+"\n"+canary),
		bad("an array", domain.ReasonNotObject, "["+goodValue+"]"),
		bad("a string", domain.ReasonNotObject, `"`+canary+`"`),
		bad("a number", domain.ReasonNotObject, "1"),
		bad("null", domain.ReasonNotObject, "null"),
		bad("true", domain.ReasonNotObject, "true"),
		bad("an unknown name twice", domain.ReasonDuplicateKey, with("{", `{"`+canary+`":1,"`+canary+`":1,`)),
		bad("a name twice in the depth", domain.ReasonDuplicateKey, with("{", `{"x":[{"y":{"eventId":1,"eventId":1}}],`)),
		bad("a name twice, once escaped", domain.ReasonDuplicateKey, with("{", `{"x":1,"\u0078":1,`)),
		{"a field twice", record(with("{", `{"orderId":43,`)), domain.ReasonDuplicateKey, "orderId"},
		{"a field twice with one value", record(with("{", `{"orderId":42,`)), domain.ReasonDuplicateKey, "orderId"},
	}
}

func badNames() []badRecord {
	all := []badRecord{
		{"EventID", record(with("eventId", "EventID")), domain.ReasonFieldCase, "eventId"},
		{"EventID beside eventId", record(with("{", `{"EventID":"`+canary+`",`)), domain.ReasonFieldCase, "eventId"},
		{"EventID with the id in the header", record(with("eventId", "EventID"), idHeader(goodID)), domain.ReasonFieldCase, "eventId"},
		{"orderID", record(with("orderId", "orderID")), domain.ReasonFieldCase, "orderId"},
		{"totalamount", record(with("totalAmount", "totalamount")), domain.ReasonFieldCase, "totalAmount"},
		{"CURRENCY", record(with("currency", "CURRENCY")), domain.ReasonFieldCase, "currency"},
		{"a long s for an s", record(with("customerId", "cuſtomerId")), domain.ReasonFieldCase, "customerId"},
		{"AggregateType, the optional field", record(with("aggregateType", "AggregateType")), domain.ReasonFieldCase, "aggregateType"},
		{"an empty object", record("{}"), domain.ReasonMissingField, "eventType"},
		{"an id of snake case", record(with("orderId", "order_id")), domain.ReasonMissingField, "orderId"},
		{"a field one level down", record(with(fieldText("orderId"), `"data":{`+fieldText("orderId")+`}`)), domain.ReasonMissingField, "orderId"},
	}
	for _, field := range []string{"eventId", "eventType", "occurredAt", "orderId", "customerId", "totalAmount", "currency"} {
		all = append(all, badRecord{"no " + field, record(without(field)), domain.ReasonMissingField, field})
	}
	for field, types := range map[string][]string{
		"eventId":       {"null", "1", "true", "{}", `["` + canary + `"]`},
		"eventType":     {"null", "1", "false", "{}", `["` + canary + `"]`},
		"occurredAt":    {"null", "1767323045678", "true", "{}", "[]"},
		"aggregateType": {"null", "1", "true", "{}", `["Order"]`},
		"orderId":       {"null", `"42"`, "true", "{}", "[42]"},
		"customerId":    {"null", `"7"`, "true", "{}", "[7]"},
		"totalAmount":   {"null", "true", `{"value":"` + canary + `"}`, "[10.50]"},
		"currency":      {"null", "978", "true", "{}", `["EUR"]`},
	} {
		for _, raw := range types {
			all = append(all, badRecord{field + " is " + raw, record(withField(field, raw)), domain.ReasonWrongType, field})
		}
	}
	for _, text := range []string{
		"", "order.confirmed.v2", "order.confirmed", "ORDER.CONFIRMED.V1", " order.confirmed.v1", "order.confirmed.v1 ",
		`order.confirmed.v1\u0000`, canary,
	} {
		all = append(all, badRecord{"eventType " + text, record(withField("eventType", `"`+text+`"`)), domain.ReasonEventType, "eventType"})
	}
	for _, text := range []string{"", "order", "ORDER", "Cart", "Order ", canary} {
		all = append(all, badRecord{"aggregateType " + text, record(withField("aggregateType", `"`+text+`"`)), domain.ReasonAggregateType, "aggregateType"})
	}
	return append(all, badRecord{
		"another event altogether", record(`{"eventType":"` + canary + `"}`), domain.ReasonEventType, "eventType",
	})
}

// badUUIDs are no event ids, neither in the body nor in a header.
func badUUIDs() map[string]string {
	return map[string]string{
		"an empty id": "", "text": canary, "a number": "42", "32 hex digits": strings.ReplaceAll(goodID, "-", ""),
		"urn:uuid:": "urn:uuid:" + goodID, "braces": "{" + goodID + "}", "white space before": " " + goodID,
		"white space behind": goodID + " ", "white space instead": " " + goodID[1:], "a digit short": goodID[:35],
		"no hex digit": "g" + goodID[1:], "a dash elsewhere": goodID[:7] + "-" + goodID[7:8] + goodID[9:],
		"no dashes, 36 digits": strings.ReplaceAll(goodID, "-", "0"), "full-width digits": "０" + goodID[3:],
	}
}

func badIDs() []badRecord {
	var all []badRecord
	add := func(name, id string) {
		all = append(all, badRecord{"event id: " + name, record(withField("eventId", `"`+id+`"`)), domain.ReasonEventID, "eventId"})
	}
	for name, id := range badUUIDs() {
		add(name, id)
	}
	add("a NUL behind", goodID+`\u0000`)
	add("a NUL within", `\u0000`+goodID[1:])
	for name, id := range map[string]string{
		"nil":       "00000000-0000-0000-0000-000000000000",
		"max":       "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"MAX":       "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
		"version 0": "0198f3a1-5b6c-0d8e-9f01-23456789abcd",
		"version 9": "0198f3a1-5b6c-9d8e-9f01-23456789abcd",
		"NCS":       "0198f3a1-5b6c-7d8e-1f01-23456789abcd",
		"Microsoft": "0198f3a1-5b6c-7d8e-cf01-23456789abcd",
		"future":    "0198f3a1-5b6c-7d8e-ef01-23456789abcd",
	} {
		add(name, id)
		all = append(all, badRecord{"event id in the header: " + name, record(without("eventId"), idHeader(id)), domain.ReasonEventID, "eventId"})
	}
	return all
}

func badHeaders() []badRecord {
	const other = "0198f3a1-5b6c-7d8e-9f01-23456789abce"
	all := []badRecord{
		{"header of bytes that are no text", record(goodValue, idHeader("\xff\xfe\x00")), domain.ReasonEventIDHeader, "eventId"},
		{"header of 16 raw bytes", record(without("eventId"), idHeader(goodID[:16])), domain.ReasonEventIDHeader, "eventId"},
		{"header of a JSON string", record(without("eventId"), idHeader(`"`+goodID+`"`)), domain.ReasonEventIDHeader, "eventId"},
		{"null header", record(without("eventId"), domain.Header{Key: "eventId"}), domain.ReasonEventIDHeader, "eventId"},
		{"null header beside a body id", record(goodValue, domain.Header{Key: "eventId"}), domain.ReasonEventIDHeader, "eventId"},
		{"two headers that differ", record(without("eventId"), idHeader(goodID), idHeader(other)), domain.ReasonEventIDHeader, "eventId"},
		{"a good header, then a bad one", record(goodValue, idHeader(goodID), idHeader(canary)), domain.ReasonEventIDHeader, "eventId"},
		{"header and body differ", record(goodValue, idHeader(other)), domain.ReasonEventIDMismatch, "eventId"},
		{"header nil, body good", record(goodValue, idHeader("00000000-0000-0000-0000-000000000000")), domain.ReasonEventIDMismatch, "eventId"},
		{"a header of other case", record(without("eventId"), domain.Header{Key: "EventId", Value: []byte(goodID)}), domain.ReasonMissingField, "eventId"},
		{"body null, header good", record(withField("eventId", "null"), idHeader(goodID)), domain.ReasonWrongType, "eventId"},
		{"body bad, header good", record(withField("eventId", `"`+canary+`"`), idHeader(goodID)), domain.ReasonEventID, "eventId"},
	}
	for name, id := range badUUIDs() {
		all = append(all, badRecord{"header: " + name, record(goodValue, idHeader(id)), domain.ReasonEventIDHeader, "eventId"})
	}
	return all
}

func badTimes() []badRecord {
	var all []badRecord
	for _, text := range []string{
		"", canary, "2026-01-02", "03:04:05Z", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-01-02T03:04Z",
		"20260102T030405Z", "2026-1-02T03:04:05Z", "2026-01-2T03:04:05Z", "2026-01-02T3:04:05Z", "2026-01-02T03:4:05Z",
		"26-01-02T03:04:05Z", "02026-01-02T03:04:05Z", "+2026-01-02T03:04:05Z", "-2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05,678Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.6 Z", "2026-01-02T03:04:05.678",
		"2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+01", "2026-01-02T03:04:05+1:00", "2026-01-02T03:04:05+24:00",
		"2026-01-02T03:04:05+01:60", "2026-01-02T03:04:05 +01:00", "2026-01-02T03:04:05UTC", "2026-01-02T03:04:05GMT+1",
		"2026-01-02T03:04:05ZZ", " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z ", "2026-13-02T03:04:05Z",
		"2026-00-02T03:04:05Z", "2026-01-32T03:04:05Z", "2026-01-00T03:04:05Z", "2025-02-29T03:04:05Z", "2100-02-29T03:04:05Z",
		"2026-04-31T03:04:05Z", "2026-01-02T24:00:00Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z",
		"2026-01-02T03:04:60Z", "2026-01-02T23:59:60Z", "2017-01-01T05:59:60Z", "2017-01-01T00:00:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T22:59:60Z",
		"0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z",
		"10000-01-01T00:00:00Z", "1767323045", "Fri, 02 Jan 2026 03:04:05 GMT", "2026-W01-5T03:04:05Z", "2026-002T03:04:05Z",
		"２０26-01-02T03:04:05Z", "2026-01-02T03:04:05.678Z" + strings.Repeat("0", 100), "2026-01-02T03:04:05\\u0000Z",
		"2026-01-02T03:04:05." + strings.Repeat("6", 64) + "Z", "2026-01-02T03:04:05Z[Europe/Paris]",
	} {
		all = append(all, badRecord{"occurredAt " + text, record(withField("occurredAt", `"`+text+`"`)), domain.ReasonOccurredAt, "occurredAt"})
	}
	return all
}

func badNumbers() []badRecord {
	var all []badRecord
	for field, reason := range map[string]domain.Reason{"orderId": domain.ReasonOrderID, "customerId": domain.ReasonCustomerID} {
		for _, raw := range []string{
			"0", "-0", "-1", "9223372036854775808", "18446744073709551616", "-9223372036854775808", "1.0", "1.5", "0.1", "1e3", "1E3",
			"1e400", "1e999999999", "1e-999999999", "9.2e18", strings.Repeat("9", 1_000),
		} {
			all = append(all, badRecord{field + " " + raw, record(withField(field, raw)), reason, field})
		}
	}
	return all
}

func badMoney() []badRecord {
	var all []badRecord
	add := func(reason domain.Reason, code string, literals ...string) {
		for _, raw := range literals {
			value := with("10.50", raw, "EUR", code)
			all = append(all, badRecord{"totalAmount " + raw + " " + code, record(value), reason, "totalAmount"})
			value = with("10.50", `"`+raw+`"`, "EUR", code)
			all = append(all, badRecord{"totalAmount " + raw + " in a string, " + code, record(value), reason, "totalAmount"})
		}
	}
	add(domain.ReasonAmountNotPositive, "EUR", "0", "0.00", "-0", "-1", "-10.50", "0e999999999", "-1e999999999")
	add(domain.ReasonAmountTooLarge, "EUR", "1e15", "1e400", "1e999999999", "1000000000000000", "1e99999999999999999999")
	add(domain.ReasonAmountPrecision, "EUR", "10.505", "0.1e-2", "0.001", "1e-400", "1e-999999999", "10.500000000000000001")
	add(domain.ReasonAmountPrecision, "JPY", "100.5", "0.1", "1e-1")
	add(domain.ReasonAmountPrecision, "KWD", "1.2345")
	add(domain.ReasonAmount, "EUR", strings.Repeat("1", 300), "1."+strings.Repeat("0", 300))
	for _, text := range []string{"", " 10.50", "10.50 ", "10,50", "1_000", "1.000,50", "+10.50", "010.50", ".5", "5.", "0x1p4", "NaN", "Infinity", "10.50 EUR", "€10.50", canary, `10.50\u0000`} {
		all = append(all, badRecord{"totalAmount is text " + text, record(withField("totalAmount", `"`+text+`"`)), domain.ReasonAmount, "totalAmount"})
	}
	for _, code := range []string{"", "eur", "Eur", "EURO", "EU", "XXX", "XAU", "ZZZ", "978", " EUR", "EUR ", "€", `EUR\u0000`, canary, "ＥＵＲ"} {
		all = append(all, badRecord{"currency " + code, record(withField("currency", `"`+code+`"`)), domain.ReasonCurrency, "currency"})
	}
	return all
}
