package domain_test

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"example.com/billing/api"
	"example.com/billing/internal/domain"
)

const (
	schemaFile  = "events/order-confirmed.v1.schema.json"
	exampleFile = "events/order-confirmed.v1.example.json"
)

func TestTheExampleIsAnEventAndKeepsItsSchema(t *testing.T) {
	t.Parallel()
	example, err := fs.ReadFile(api.FS, exampleFile)
	require.NoError(t, err)
	event, err := domain.Decoder{RequireV7: true}.Decode(&domain.Record{Value: example})
	require.NoError(t, err)
	require.Equal(t, goodEvent(t), event)
	require.NoError(t, orderSchema(t).Validate(instance(t, string(example))))
}

// What a producer's validation passes must not end as a dead letter, as far as a
// schema can say it.
func TestTheSchemaRefusesWhatDecodeRefuses(t *testing.T) {
	t.Parallel()
	schema := orderSchema(t)
	// Of these a schema says everything, of the others nothing or not all.
	expressible := []domain.Reason{
		domain.ReasonNotObject, domain.ReasonMissingField, domain.ReasonWrongType, domain.ReasonEventType, domain.ReasonEventID,
		domain.ReasonAggregateType, domain.ReasonOrderID, domain.ReasonCustomerID, domain.ReasonCurrency,
		domain.ReasonAmount, domain.ReasonAmountNotPositive,
	}
	refused := map[domain.Reason]int{}
	for _, bad := range badRecords() {
		if !slices.Contains(expressible, bad.reason) || beyondSchema(bad) {
			continue
		}
		require.Error(t, schema.Validate(instance(t, string(bad.record.Value))), bad.name)
		refused[bad.reason]++
	}
	for _, reason := range expressible {
		require.Positive(t, refused[reason], "no record of the table is %s", reason)
	}
}

// beyondSchema reports whether the fault is not in the value as JSON Schema sees
// it: in the headers, or in the way that a number is written.
func beyondSchema(bad badRecord) bool {
	if len(bad.record.Headers) > 0 || bad.name == "no eventId" {
		return true
	}
	value := string(bad.record.Value)
	for _, number := range []string{"1.0,", "1e3,", "1E3,", "9.2e18,", "1." + strings.Repeat("0", 300) + ",", strings.Repeat("1", 300) + ","} {
		if strings.Contains(value, ":"+number) {
			return true // the same number as one that is written well
		}
	}
	return strings.Contains(value, "e999999999") || strings.Contains(value, "e-999999999") // the validator would compute it
}

func TestTheSchemaBoundsTimesAndAmounts(t *testing.T) {
	t.Parallel()
	schema := orderSchema(t)
	for name, value := range map[string]string{
		"a time without a zone":       withField("occurredAt", `"2026-01-02T03:04:05"`),
		"a time with a space":         withField("occurredAt", `"2026-01-02 03:04:05Z"`),
		"a comma fraction":            withField("occurredAt", `"2026-01-02T03:04:05,6Z"`),
		"the 30th of February":        withField("occurredAt", `"2026-02-30T03:04:05Z"`),
		"an offset of a day":          withField("occurredAt", `"2026-01-02T03:04:05+24:00"`),
		"an amount of 10^15":          withField("totalAmount", "1000000000000000"),
		"half a yen":                  with("10.50", "0.5", "EUR", "JPY"),
		"a zero in a string":          withField("totalAmount", `"0.00e5"`),
		"a long amount in a string":   withField("totalAmount", `"1.`+strings.Repeat("0", domain.MaxAmountBytes)+`"`),
		"an upper-case urn event id":  withField("eventId", `"URN:UUID:`+goodID+`"`),
		"an amount in another script": withField("totalAmount", `"١٠"`),
	} {
		_, err := domain.Decoder{}.Decode(record(value))
		require.Error(t, err, name)
		require.Error(t, schema.Validate(instance(t, value)), name)
	}
}

func TestTheSchemaPassesWhatDecodeTakes(t *testing.T) {
	t.Parallel()
	schema := orderSchema(t)
	for _, value := range []string{
		goodValue, without("aggregateType"), without("eventId"), withField("totalAmount", "10.5"), withField("totalAmount", `"10.50"`),
		withField("totalAmount", `"1.05e1"`), withField("totalAmount", "999999999999999.99"), withField("totalAmount", "0.01"),
		withField("totalAmount", `"0.010"`), with("10.50", "100.00", "EUR", "JPY"), with("10.50", `"100.00"`, "EUR", "JPY"),
		with("42", "9223372036854775807"), with(goodID, strings.ToUpper(goodID)), with("{", `{"x":{"y":[null]},`),
		withField("occurredAt", `"2026-01-02T03:04:05.678+05:30"`), withField("occurredAt", `"1990-12-31T15:59:60-08:00"`),
		withField("occurredAt", `"2026-01-02t03:04:05z"`), withField("occurredAt", `"2026-01-02T03:04:05.6780000009999Z"`),
	} {
		_, err := domain.Decoder{}.Decode(record(value, idHeader(goodID)))
		require.NoError(t, err, value)
		require.NoError(t, schema.Validate(instance(t, value)), value)
	}
}

func TestTheSchemaKnowsTheSameCurrencies(t *testing.T) {
	t.Parallel()
	schema := orderSchema(t)
	listed := schema.Properties["currency"].Enum.Values
	require.Len(t, listed, len(currency.GetCurrencyCodes()))
	var whole []any
	for _, code := range currency.GetCurrencyCodes() {
		require.Contains(t, listed, code)
		if cur, err := domain.ParseCurrency(code); err == nil && cur.Exponent() == 0 {
			whole = append(whole, code)
		}
	}
	require.ElementsMatch(t, whole, schema.If.Properties["currency"].Enum.Values)
}

func TestAsyncAPIDescribesTheRecordThatIsDecoded(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(api.FS, "asyncapi.yaml")
	require.NoError(t, err)
	var document struct {
		AsyncAPI string `yaml:"asyncapi"`
		Channels map[string]struct {
			Address string `yaml:"address"`
		} `yaml:"channels"`
		Components struct {
			Messages map[string]struct {
				Name    string `yaml:"name"`
				Payload struct {
					Schema map[string]string `yaml:"schema"`
				} `yaml:"payload"`
				Examples []struct {
					Headers map[string]string `yaml:"headers"`
					Payload yaml.Node         `yaml:"payload"`
				} `yaml:"examples"`
			} `yaml:"messages"`
			Schemas map[string]struct {
				Properties map[string]any `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	require.Equal(t, "3.0.0", document.AsyncAPI)
	require.Equal(t, "orders.confirmed", document.Channels["ordersConfirmed"].Address)

	message := document.Components.Messages["orderConfirmed"]
	require.Equal(t, domain.EventTypeOrderConfirmed, message.Name)
	_, err = fs.Stat(api.FS, strings.TrimPrefix(message.Payload.Schema["$ref"], "./"))
	require.NoError(t, err, "the payload's schema is one of our files")
	for _, header := range []string{"eventId", "traceparent", "tracestate"} {
		require.Contains(t, document.Components.Schemas["orderConfirmedHeaders"].Properties, header)
	}

	require.Len(t, message.Examples, 1)
	parent, _ := record("", domain.Header{
		Key: "traceparent", Value: []byte(message.Examples[0].Headers["traceparent"]),
	}).TraceContext()
	require.NotEmpty(t, parent)
	var payload map[string]any
	require.NoError(t, message.Examples[0].Payload.Decode(&payload))
	require.NoError(t, orderSchema(t).Validate(payload))
}

func TestEveryReferenceOfAsyncAPIResolves(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(api.FS, "asyncapi.yaml")
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, yaml.Unmarshal(text, &document))
	found := 0
	for line := range strings.Lines(string(text)) {
		_, reference, ok := strings.Cut(strings.Trim(line, " -\n"), "$ref: ")
		if !ok {
			continue
		}
		found++
		path, local := strings.CutPrefix(strings.Trim(reference, `'`), "#/")
		if !local {
			continue
		}
		var node any = document
		for part := range strings.SplitSeq(path, "/") {
			parent, isMap := node.(map[string]any)
			require.True(t, isMap, reference)
			node = parent[part]
		}
		require.NotNil(t, node, reference)
	}
	require.Positive(t, found)
}

func orderSchema(t require.TestingT) *jsonschema.Schema {
	text, err := fs.ReadFile(api.FS, schemaFile)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource(schemaFile, document))
	schema, err := compiler.Compile(schemaFile)
	require.NoError(t, err)
	return schema
}

func instance(t require.TestingT, value string) any {
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	require.NoError(t, err, value)
	return parsed
}
