package orders_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/sandbox/orders"
)

func generate(t *testing.T, records int, options orders.Options) *orders.Plan {
	t.Helper()

	plan, err := orders.Generate(records, options)
	require.NoError(t, err)

	return plan
}

// decode reads a record as the service does.
func decode(t *testing.T, r orders.Record) domain.Event {
	t.Helper()

	record := &domain.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, domain.Header{Key: h.Key, Value: h.Value})
	}

	event, err := domain.Decoder{RequireV7: true}.Decode(record)
	require.NoError(t, err, "%s", r.Value)

	return event
}

func TestCountsAreExact(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name                          string
		records                       int
		duplicates                    float64
		unique, repeated, republished int
	}{
		{"a fifth", 1000, 0.2, 800, 100, 100},
		{"none", 100, 0, 100, 0, 0},
		{"an odd number: the half goes to the repeated ones", 10, 0.5, 5, 3, 2},
		{"one record", 1, 0, 1, 0, 0},
		{"more duplicates than events", 5000, 0.9, 500, 2250, 2250},
		{"a share that is no whole number of records", 1001, 0.2, 801, 100, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			plan := generate(t, tt.records, orders.Options{Seed: 7, Duplicates: tt.duplicates})
			kinds := map[orders.Kind]int{}
			ids := map[uuid.UUID]bool{}

			for r := range plan.Records() {
				kinds[r.Kind]++
				ids[decode(t, r).ID] = true
			}

			require.Equal(t, tt.unique, kinds[orders.Original])
			require.Equal(t, tt.repeated, kinds[orders.Repeated])
			require.Equal(t, tt.republished, kinds[orders.Republished])
			require.Len(t, ids, tt.unique)

			e := plan.Expected()
			require.Equal(t, tt.records, e.Records)
			require.Equal(t, tt.unique, e.Unique)
			require.Equal(t, [2]int{tt.repeated, tt.republished}, [2]int{e.Repeated, e.Republished})
			require.Equal(t, tt.records-tt.unique, e.Duplicates())
		})
	}
}

func TestDuplicatesAreOfTheirKind(t *testing.T) {
	t.Parallel()

	plan := generate(t, 5000, orders.Options{Seed: 1, Duplicates: 0.4, Traced: true})
	originals := map[uuid.UUID]orders.Record{}
	variety := map[string]bool{}

	var last orders.Record

	gaps := 0

	for r := range plan.Records() {
		event := decode(t, r)
		original, known := originals[event.ID]

		switch r.Kind {
		case orders.Original:
			require.False(t, known)

			originals[event.ID] = r
		case orders.Conflicting, orders.Invalid:
			require.Fail(t, "none were asked for")
		case orders.Repeated:
			require.True(t, r.Equal(last), "a repeated record follows its original")
		case orders.Republished:
			require.True(t, known)
			require.NotEqual(t, original.Value, r.Value)
			require.Equal(t, original.Key, r.Key)

			first := decode(t, original)
			require.Equal(t, first.Fingerprint(), event.Fingerprint(), "%s\n%s", original.Value, r.Value)
			require.NotEqual(t, first.TraceParent, event.TraceParent)

			if last.OrderID != r.OrderID {
				gaps++
			}

			variety["header"] = variety["header"] || slices.ContainsFunc(r.Headers, func(h orders.Header) bool { return h.Key == "eventId" })
			variety["text amount"] = variety["text amount"] || strings.Contains(string(r.Value), `"totalAmount":"`)
			variety["offset"] = variety["offset"] || strings.Contains(string(r.Value), `+00:00"`)
			variety["upper case"] = variety["upper case"] || strings.Contains(strings.ToLower(string(r.Value)), event.ID.String()) && !strings.Contains(string(r.Value), event.ID.String())
		}

		last = r
	}

	require.Greater(t, gaps, 980, "of 1000: republished ones come later")
	require.Equal(t, map[string]bool{"header": true, "text amount": true, "offset": true, "upper case": true}, variety)
}

func TestConflictsGiveAnEventThatIsOutAnotherAmountAndNothingElse(t *testing.T) {
	t.Parallel()

	options := orders.Options{Seed: 5, Duplicates: 0.2, Conflicts: 0.1, Traced: true, Start: time.Unix(1_800_000_000, 0)}
	plan := generate(t, 2000, options)
	e := plan.Expected()
	require.Equal(t, [4]int{1400, 200, 200, 200}, [4]int{e.Unique, e.Repeated, e.Republished, e.Conflicting})
	require.Equal(t, 2000, e.Records)

	originals := map[uuid.UUID]orders.Record{}
	found := 0

	for r := range plan.Records() {
		event := decode(t, r) // each is a valid event by itself
		if r.Kind == orders.Original {
			originals[event.ID] = r
		}

		if r.Kind != orders.Conflicting {
			continue
		}

		found++
		original, known := originals[event.ID]
		require.True(t, known, "the original is out")

		first := decode(t, original)
		require.NotEqual(t, first.Fingerprint(), event.Fingerprint())
		require.NotEqual(t, first.Total, event.Total)
		require.Equal(t, original.Key, r.Key, "in the partition of its original")

		event.Total = first.Total
		require.Equal(t, first.Fingerprint(), event.Fingerprint(), "but for the amount it says the same")
	}

	require.Equal(t, 200, found)
}

func TestInvalidRecordsHoldNoEvent(t *testing.T) {
	t.Parallel()

	plan := generate(t, 2000, orders.Options{Seed: 5, Duplicates: 0.2, Conflicts: 0.1, Invalid: 0.05, Traced: true})
	e := plan.Expected()
	require.Equal(t, [5]int{1300, 200, 200, 200, 100}, [5]int{e.Unique, e.Repeated, e.Republished, e.Conflicting, e.Invalid})

	found, records := 0, 0
	forms := map[string]bool{}

	for r := range plan.Records() {
		if records++; r.Kind != orders.Invalid {
			decode(t, r)

			continue
		}

		found++
		forms[string(r.Value[:min(len(r.Value), 3)])] = true
		_, err := domain.Decoder{}.Decode(&domain.Record{Key: r.Key, Value: r.Value})
		require.Error(t, err)
	}

	require.Equal(t, 100, found)
	require.Equal(t, 2000, records)
	require.Greater(t, len(forms), 3, "in every form")
}

func TestOriginalsFollowTheContract(t *testing.T) {
	t.Parallel()

	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	plan := generate(t, 3000, orders.Options{Seed: 3, FirstOrderID: 501, Customers: 50, Traced: true, Start: start})
	sums, customers, traces := map[string]int64{}, map[int64]int{}, map[string]bool{}
	id, previous := int64(501), ""

	for r := range plan.Records() {
		event := decode(t, r)
		require.Equal(t, id, event.OrderID)
		require.Equal(t, strconv.FormatInt(id, 10), string(r.Key))
		require.Equal(t, uuid.Version(7), event.ID.Version())
		require.Greater(t, event.ID.String(), previous, "ids rise with time")
		require.Equal(t, start.Add(time.Duration(id-501)*time.Millisecond), event.OccurredAt)

		seconds, nanos := event.ID.Time().UnixTime()
		require.Equal(t, event.OccurredAt, time.Unix(seconds, nanos).UTC(), "the id carries the time")

		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(r.Value, &fields))
		require.Len(t, fields, 8)
		require.Equal(t, `"Order"`, string(fields["aggregateType"]))

		code := event.Total.Currency().Code()
		_, fraction, _ := strings.Cut(string(fields["totalAmount"]), ".")
		require.Len(t, fraction, map[string]int{"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0, "KWD": 3}[code], "%s", r.Value)

		sums[code] += int64(event.Total.Minor())
		customers[event.CustomerID]++
		traces[event.TraceParent] = true
		id, previous = id+1, event.ID.String()
	}

	require.Equal(t, plan.Expected().Sums, sums)
	require.Len(t, sums, 5)
	require.Len(t, traces, 3000, "a trace of its own for each")
	require.NotContains(t, traces, "")
	// Zipf: the first customer orders about a fifth, and nobody beyond the last does.
	require.Greater(t, customers[1], 400)
	require.Less(t, customers[1], 1200)
	require.Greater(t, customers[1], 5*customers[20])
	require.Greater(t, len(customers), 45)

	for c := range customers {
		require.True(t, c >= 1 && c <= 50, "customer %d", c)
	}
}

func TestAPlanIsRepeatable(t *testing.T) {
	t.Parallel()

	options := orders.Options{Seed: 9, Duplicates: 0.3, Traced: true, Start: time.Unix(1_800_000_000, 0)}
	walk := func(p *orders.Plan) []orders.Record { return slices.Collect(p.Records()) }

	plan := generate(t, 500, options)
	first := walk(plan)
	again := walk(plan)
	require.Equal(t, first, again)
	require.Equal(t, first, walk(generate(t, 500, options)))

	options.Seed++
	require.NotEqual(t, first, walk(generate(t, 500, options)))
}

func TestWithoutAStartTheLastOrderIsOfNow(t *testing.T) {
	t.Parallel()

	before := time.Now()

	var last domain.Event
	for r := range generate(t, 2000, orders.Options{}).Records() {
		last = decode(t, r)
		require.False(t, last.OccurredAt.After(time.Now()))
		require.Empty(t, r.Headers, "no trace unless asked for")
	}

	require.WithinDuration(t, before, last.OccurredAt, time.Second)
}

func TestAWalkMayEndEarly(t *testing.T) {
	t.Parallel()

	plan := generate(t, 2000, orders.Options{Duplicates: 0.5})

	for limit := range 50 {
		n := 0
		for range plan.Records() {
			if n++; n > limit {
				break
			}
		}

		require.Equal(t, limit+1, n)
	}
}

func TestImpossiblePlansAreRefusedWithAllComplaints(t *testing.T) {
	t.Parallel()

	_, err := orders.Generate(0, orders.Options{Duplicates: 0.95, Customers: -1, FirstOrderID: -1})
	for _, words := range []string{"records 0", "duplicates 0.95", "customers -1", "first order id -1"} {
		require.ErrorContains(t, err, words)
	}

	_, err = orders.Generate(1, orders.Options{Duplicates: 0.9})
	require.ErrorContains(t, err, "duplicates only")

	_, err = orders.Generate(1, orders.Options{Currencies: []string{"EUR", "EURO"}})
	require.ErrorContains(t, err, `currency "EURO"`)
}
