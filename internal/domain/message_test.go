package domain

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"example.com/billing/api"
)

// theOutcome is the charge of the published examples.
func theOutcome(t *testing.T, status ChargeStatus) outcome {
	t.Helper()
	amount, err := StoredMoney("10.50", "EUR")
	require.NoError(t, err)
	c := Charge{
		EventID: uuid.MustParse("0198f3a1-5b6c-7d8e-9f01-23456789abcd"), OrderID: 42, CustomerID: 7, Amount: amount,
		Status: status, SettledAt: time.Date(2026, 1, 2, 4, 4, 6, 123456789, time.FixedZone("", 3600)),
	}
	if status == ChargeCaptured {
		c.ProviderChargeID = "ch_1"
	} else {
		c.DeclineCode = "insufficient_funds"
	}
	return outcome{charge: c, traceParent: "tp", traceState: "ts"}
}

func TestAnOutcomeEventIsThePublishedExample(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]ChargeStatus{"charge-captured": ChargeCaptured, "charge-declined": ChargeDeclined} {
		o := theOutcome(t, status)
		m, err := o.message()
		require.NoError(t, err)
		example, err := fs.ReadFile(api.FS, "events/"+name+".v1.example.json")
		require.NoError(t, err)
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, example))
		require.Equal(t, compact.String(), string(m.Value), "to the byte")
		require.Equal(t, EventMessage, m.Kind)
		require.Equal(t, "42", string(m.Key))
		require.Equal(t, []Header{{Key: "traceparent", Value: []byte("tp")}, {Key: "tracestate", Value: []byte("ts")}}, m.Headers)
		require.NoError(t, outcomeSchema(t, name).Validate(parsed(t, m.Value)))
	}
}

func TestOutcomeEventsKeepTheirSchemaAtEveryBound(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]ChargeStatus{"charge-captured": ChargeCaptured, "charge-declined": ChargeDeclined} {
		schema := outcomeSchema(t, name)
		for _, money := range [][2]string{{"0.01", "EUR"}, {"999999999999999.99", "EUR"}, {"100", "JPY"}, {"0.001", "KWD"}} {
			o := theOutcome(t, status)
			var err error
			o.charge.Amount, err = StoredMoney(money[0], money[1])
			require.NoError(t, err)
			o.charge.OrderID, o.charge.CustomerID = 1<<63-1, 1<<63-1
			o.charge.ProviderChargeID, o.charge.DeclineCode = "", ""
			o.charge.SettledAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
			o.traceParent, o.traceState = "", ""
			m, err := o.message()
			require.NoError(t, err)
			require.NoError(t, schema.Validate(parsed(t, m.Value)), string(m.Value))
			require.Contains(t, string(m.Value), `"amount":`+money[0]+`,"currency":"`+money[1]+`"`)
			require.Empty(t, m.Headers)
		}
		for _, odd := range []string{`"quoted"`, "<é>", "\x01", strings.Repeat("x", 255)} {
			o := theOutcome(t, status)
			o.charge.ProviderChargeID = odd
			m, err := o.message()
			require.NoError(t, err)
			require.NoError(t, schema.Validate(parsed(t, m.Value)))
			var back chargeEvent
			require.NoError(t, json.Unmarshal(m.Value, &back))
			require.Equal(t, odd, back.ProviderChargeID)
		}
	}
}

func TestTheOutcomeSchemasRefuseOtherEvents(t *testing.T) {
	t.Parallel()
	schema := outcomeSchema(t, "charge-captured")
	o := theOutcome(t, ChargeCaptured)
	m, err := o.message()
	require.NoError(t, err)
	for from, to := range map[string]string{
		`"eventType":"billing.charge-captured.v1"`: `"eventType":"billing.charge-declined.v1"`,
		`"amount":10.50`:      `"amount":0`,
		`"currency":"EUR"`:    `"currency":"XXX"`,
		`"orderId":42`:        `"orderId":0`,
		`"customerId":7,`:     ``,
		`06.123456Z`:          `06.123456+01:00`,
		`"orderEventId":"01`:  `"orderEventId":"`,
		`"aggregateType":"Or`: `"aggregateType":"or`,
	} {
		changed := strings.Replace(string(m.Value), from, to, 1)
		require.NotEqual(t, string(m.Value), changed, from)
		require.Error(t, schema.Validate(parsed(t, []byte(changed))), to)
	}
}

func TestTheIDOfAnOutcomeEventIsItsOwnAndAlwaysTheSame(t *testing.T) {
	t.Parallel()
	one, other := uuid.New(), uuid.New()
	ids := map[uuid.UUID]bool{}
	for range 2 {
		for _, event := range []uuid.UUID{one, other} {
			for _, eventType := range []string{EventTypeChargeCaptured, EventTypeChargeDeclined} {
				id := OutcomeEventID(eventType, event)
				require.EqualValues(t, 5, id.Version())
				ids[id] = true
			}
		}
	}
	require.Len(t, ids, 4)
}

func TestADeadLetterIsItsRecordAndWhy(t *testing.T) {
	t.Parallel()
	headers := []Header{{Key: "x", Value: nil}, {Key: LetterHeaderReason, Value: []byte("of an earlier life")}}
	l := Letter{
		Record: Record{
			Coordinates: Coordinates{Topic: "orders", Partition: 3, Offset: 1 << 40}, Timestamp: noon,
			Key: []byte("k"), Value: []byte("not json"), Headers: headers,
		},
		Reason: ReasonJSON, Detail: "why", Group: "g", At: noon.Add(time.Second),
	}
	m := letterMessage(&l)
	require.Equal(t, LetterMessage, m.Kind)
	require.Equal(t, l.Record.Key, m.Key)
	require.Equal(t, l.Record.Value, m.Value)
	require.Equal(t, headers, m.Headers[:2], "as they came, and in front")
	require.Equal(t, map[string]string{
		"x": "", "billing-dlq-topic": "orders", "billing-dlq-partition": "3", "billing-dlq-offset": "1099511627776",
		"billing-dlq-timestamp": noon.Format(time.RFC3339Nano), "billing-dlq-group": "g", "billing-dlq-reason": "invalid_json",
		"billing-dlq-detail": "why", "billing-dlq-parked-at": noon.Add(time.Second).Format(time.RFC3339Nano),
	}, last(m.Headers))
	require.Len(t, headers, 2, "the record's own are not touched")

	l.EventID, l.Record = uuid.New(), Record{}
	m = letterMessage(&l)
	require.Nil(t, m.Value, "a tombstone stays one")
	require.Equal(t, l.EventID.String(), last(m.Headers)["billing-dlq-event-id"])
	require.NotContains(t, last(m.Headers), "billing-dlq-timestamp")
}

// The headers that AsyncAPI promises are those that are written.
func TestAsyncAPIDescribesTheMessagesThatArePublished(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(api.FS, "asyncapi.yaml")
	require.NoError(t, err)
	var document struct {
		Channels map[string]struct {
			Address string `yaml:"address"`
		} `yaml:"channels"`
		Components struct {
			Messages map[string]struct {
				Name     string `yaml:"name"`
				Examples []struct {
					Payload map[string]any `yaml:"payload"`
				} `yaml:"examples"`
			} `yaml:"messages"`
			Schemas map[string]struct {
				Required   []string       `yaml:"required"`
				Properties map[string]any `yaml:"properties"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	require.NoError(t, yaml.Unmarshal(text, &document))
	require.Equal(t, "billing.charges", document.Channels["charges"].Address)
	require.Equal(t, "orders.confirmed.dlq", document.Channels["deadLetters"].Address)
	for name, eventType := range map[string]string{"chargeCaptured": EventTypeChargeCaptured, "chargeDeclined": EventTypeChargeDeclined} {
		message := document.Components.Messages[name]
		require.Equal(t, eventType, message.Name)
		require.Len(t, message.Examples, 1)
		value, err := json.Marshal(message.Examples[0].Payload)
		require.NoError(t, err)
		file := strings.TrimSuffix(strings.TrimPrefix(eventType, "billing."), ".v1")
		require.NoError(t, outcomeSchema(t, file).Validate(parsed(t, value)))
	}

	full := Letter{EventID: uuid.New(), Record: Record{Timestamp: noon}}
	least := Letter{}
	schema := document.Components.Schemas["deadLetterHeaders"]
	require.ElementsMatch(t, names(letterMessage(&full).Headers), propertyNames(schema.Properties))
	require.ElementsMatch(t, names(letterMessage(&least).Headers), schema.Required)
}

func names(headers []Header) (n []string) {
	for _, h := range headers {
		n = append(n, h.Key)
	}
	return n
}

func propertyNames(properties map[string]any) (n []string) {
	for name := range properties {
		n = append(n, name)
	}
	return n
}

// last returns the last value of each header.
func last(headers []Header) map[string]string {
	values := map[string]string{}
	for _, h := range headers {
		values[h.Key] = string(h.Value)
	}
	return values
}

func outcomeSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	file := "events/" + name + ".v1.schema.json"
	text, err := fs.ReadFile(api.FS, file)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource(file, document))
	schema, err := compiler.Compile(file)
	require.NoError(t, err)
	return schema
}

func parsed(t *testing.T, value []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	require.NoError(t, err)
	return v
}

// What is published is what becomes final, and nothing else.
func TestOnlyACaptureOrADeclineIsTold(t *testing.T) {
	t.Parallel()
	policy := bounds
	policy.PublishEvents = true
	for status, told := range map[ChargeStatus]int{
		ChargeCaptured: 1, ChargeDeclined: 1, ChargeDuplicateOrder: 0, ChargeDiscarded: 0,
	} {
		e, in := leased()
		in.Claimed = true
		r := newRuling(&policy, noon)
		r.finish(situation{event: e, intent: in, claims: true}, status, Answer{})
		require.Len(t, r.told, told, status)
		silent := newRuling(&bounds, noon)
		silent.finish(situation{event: e, intent: in, claims: true}, status, Answer{})
		require.Empty(t, silent.told, "without a topic")
	}
}
