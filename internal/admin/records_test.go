package admin_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestAChargeIsShownInFull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.charges = []domain.Charge{theCharge(t, 1), theCharge(t, 2, func(c *domain.Charge) {
		c.Status, c.ProviderChargeID, c.DeclineCode, c.ClaimsOrder = domain.ChargeDeclined, "", "insufficient_funds", false
		c.SettledAt = c.SettledAt.In(time.FixedZone("somewhere", -3600))
	})}
	items := b.items(t, "/api/v1/charges")
	require.Equal(t, []any{
		map[string]any{
			"event_id": "0195500a-7c00-7000-8000-000000000002", "order_id": 2., "customer_id": 777666555.,
			"amount": "10.50", "currency": "EUR", "status": "declined", "provider_charge_id": nil,
			"decline_code": "insufficient_funds", "attempts": 1., "claims_order": false,
			"occurred_at": "2026-03-01T11:00:30Z", "settled_at": "2026-03-01T12:02:30Z",
			"source": map[string]any{"topic": "orders", "partition": 2., "offset": 2.},
		},
		map[string]any{
			"event_id": "0195500a-7c00-7000-8000-000000000001", "order_id": 1., "customer_id": 777666555.,
			"amount": "10.50", "currency": "EUR", "status": "captured", "provider_charge_id": "ch_1",
			"decline_code": nil, "attempts": 1., "claims_order": true,
			"occurred_at": "2026-03-01T11:00:30Z", "settled_at": "2026-03-01T12:01:30Z",
			"source": map[string]any{"topic": "orders", "partition": 2., "offset": 1.},
		},
	}, items)
}

func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	for want, amount := range map[string]struct {
		decimal, currency string
	}{
		"100":                  {"100", "JPY"},
		"1.500":                {"1.5", "KWD"},
		"0.01":                 {"0.01", "EUR"},
		"999999999999999.99":   {"999999999999999.99", "EUR"},
		"999999999999999.9999": {"999999999999999.9999", "CLF"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			money, err := domain.ParseMoney(amount.decimal, amount.currency)
			require.NoError(t, err)
			b.archive.charges = []domain.Charge{theCharge(t, 1, func(c *domain.Charge) { c.Amount, c.OrderID = money, math.MaxInt64 })}
			body := b.get(t, "/api/v1/charges?orderId=9223372036854775807").Body.String()
			require.Contains(t, body, `"amount":"`+want+`"`)
			require.Contains(t, body, `"order_id":9223372036854775807,`)
		})
	}
}

func TestPagesFollowEachOtherToTheEnd(t *testing.T) {
	t.Parallel()
	const count = 120
	b := setup(t)
	for n := 1; n <= count; n++ {
		b.archive.charges = append(b.archive.charges, theCharge(t, n))
		b.archive.letters = append(b.archive.letters, theLetter(n))
		b.archive.log = append(b.archive.log, theDuplicate(n))
	}
	for path, key := range map[string]string{
		"/api/v1/charges": "order_id", "/api/v1/dead-letters": "id", "/api/v1/dedup/duplicates": "id",
	} {
		for query, sizes := range map[string][]int{
			"":           {50, 50, 20},
			"limit=60":   {60, 60},
			"limit=500":  {120},
			"limit=119":  {119, 1},
			"cursor=":    {50, 50, 20},
			"limit=1e2":  nil,
			"limit=0050": nil,
		} {
			t.Run(path+"?"+query, func(t *testing.T) {
				t.Parallel()
				if sizes == nil {
					b.refused(t, path+"?"+query, http.StatusBadRequest)
					return
				}
				target, expected := path+"?"+query, float64(count)
				for i, size := range sizes {
					page := b.show(t, target)
					items := as[[]any](t, page["items"])
					require.Len(t, items, size)
					for _, item := range items { // newest first, none missing, none twice
						require.InDelta(t, expected, as[map[string]any](t, item)[key], 0)
						expected--
					}
					if i == len(sizes)-1 {
						require.Nil(t, page["next"])
						return
					}
					target = path + "?" + strings.TrimSuffix(query, "cursor=") + "&cursor=" + as[string](t, page["next"])
				}
			})
		}
	}
}

func TestAnEmptyListIsAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/api/v1/charges", "/api/v1/dead-letters", "/api/v1/dedup/duplicates"} {
		require.JSONEq(t, `{"items":[],"next":null}`, b.get(t, path).Body.String())
	}
}

func TestACursorHasABound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.fault = http.ErrHandlerTimeout // to be asked is to fail
	got := b.refused(t, "/api/v1/charges?cursor="+strings.Repeat("x", 513), http.StatusBadRequest)
	require.Equal(t, "cursor", got["parameter"])
}

func TestListsAreFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.charges = []domain.Charge{
		theCharge(t, 1), theCharge(t, 2, func(c *domain.Charge) { c.Status = domain.ChargeDeclined }),
		theCharge(t, 3, func(c *domain.Charge) { c.OrderID, c.Status = 2, domain.ChargeCaptured }),
	}
	for n, kind := range domain.DuplicateKinds() {
		b.archive.log = append(b.archive.log, theDuplicate(n+1, func(d *domain.Duplicate) { d.Kind = kind }))
	}
	b.archive.log = append(b.archive.log, theDuplicate(4, func(d *domain.Duplicate) { d.Group = "another" }))
	b.archive.letters = []domain.Letter{
		theLetter(1), theLetter(2, func(l *domain.Letter) { l.State = domain.LetterDiscarded }),
		theLetter(3, func(l *domain.Letter) { l.Reason, l.EventID, l.OrderID = domain.ReasonOrderConflict, theID(3), 3 }),
	}
	for target, want := range map[string][]float64{
		"charges":                           {2, 2, 1},
		"charges?orderId=2":                 {2, 2},
		"charges?orderId=2&status=captured": {2},
		"charges?status=declined":           {2},
		"charges?status=discarded":          {},
		"dead-letters":                      {3, 2, 1},
		"dead-letters?state=discarded":      {2},
		"dead-letters?reason=invalid_json":  {2, 1},
		"dead-letters?eventId=0195500a-7c00-7000-8000-000000000003": {3},
		"dead-letters?eventId=0195500A-7C00-7000-8000-000000000003": {3},
		"dead-letters?reason=order_conflict&state=open":             {3},
		"dead-letters?reason=invalid_json&state=open&limit=1":       {1},
		"dead-letters?since=2026-03-01T12:00:31Z":                   {},
		"dead-letters?since=2026-03-01T13:00:30%2B01:00":            {3, 2, 1},
		"dead-letters?until=2026-03-01T12:00:30Z":                   {},

		"dedup/duplicates":                  {3, 2, 1},
		"dedup/duplicates?kind=republished": {2},

		"dedup/duplicates?eventId=0195500a-7c00-7000-8000-000000000003":                  {3},
		"dedup/duplicates?eventId=0195500a-7c00-7000-8000-000000000003&kind=redelivered": {},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			items := b.items(t, "/api/v1/"+target)
			got := []float64{}
			for _, item := range items {
				key := "id"
				if strings.HasPrefix(target, "charges") {
					key = "order_id"
				}
				got = append(got, as[float64](t, as[map[string]any](t, item)[key]))
			}
			require.Equal(t, want, got)
		})
	}
}

func TestADeadLetterIsShownWithItsBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.letters = []domain.Letter{theLetter(7, func(l *domain.Letter) {
		l.Record.Key, l.Record.Value = []byte("\x00\xff"), []byte(`{"customerId":777666555`)
		l.Record.Headers = []domain.Header{{Key: "a\xff", Value: []byte("v")}, {Key: "nil"}, {Key: "empty", Value: []byte{}}}
	})}
	want := map[string]any{
		"id": 7., "reason": "invalid_json", "detail": "not JSON", "state": "open", "event_id": nil, "order_id": nil,
		"group": testGroup, "source": map[string]any{"topic": "orders", "partition": 1., "offset": 7.},
		"timestamp": "2026-03-01T11:00:30Z", "parked_at": "2026-03-01T12:00:30Z",
	}
	items := b.items(t, "/api/v1/dead-letters")
	require.Equal(t, []any{want}, items, "a list has no bytes")

	want["key_base64"], want["value_base64"] = "AP8=", "eyJjdXN0b21lcklkIjo3Nzc2NjY1NTU="
	want["headers"] = []any{
		map[string]any{"key_base64": "Yf8=", "value_base64": "dg=="},
		map[string]any{"key_base64": "bmls", "value_base64": nil},
		map[string]any{"key_base64": "ZW1wdHk=", "value_base64": ""},
	}
	b.archive.actions = []domain.Action{
		{LetterID: 7, Kind: domain.ActionReplay, By: "alice", Result: domain.ResultStillInvalid, At: noon},
		{LetterID: 8, Kind: domain.ActionReplay, By: "alice", Result: domain.ResultStillInvalid, At: noon},
		{LetterID: 7, Kind: domain.ActionDiscard, By: "bob", Why: "given up", Outcome: domain.OutcomeNotCharged, Result: domain.ResultClosed, At: noon},
	}
	want["actions"] = []any{
		map[string]any{
			"letter_id": 7., "action": "discard", "by": "bob", "reason": "given up", "outcome": "not_charged", "result": "closed",
			"at": "2026-03-01T12:00:30Z",
		},
		map[string]any{
			"letter_id": 7., "action": "replay", "by": "alice", "reason": "", "outcome": nil, "result": "still_invalid",
			"at": "2026-03-01T12:00:30Z",
		},
	}
	require.Equal(t, want, b.show(t, "/api/v1/dead-letters/7"))
	require.NotContains(t, b.log.String(), "777666555")
}

func TestATombstoneIsNotAnEmptyValue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.letters = []domain.Letter{
		theLetter(1, func(l *domain.Letter) { l.Record.Timestamp = time.Time{} }),
		theLetter(2, func(l *domain.Letter) { l.Record.Key, l.Record.Value = []byte{}, []byte{} }),
	}
	tombstone := b.show(t, "/api/v1/dead-letters/1")
	require.Nil(t, tombstone["value_base64"])
	require.Nil(t, tombstone["key_base64"])
	require.Nil(t, tombstone["timestamp"])
	require.Equal(t, []any{}, tombstone["headers"])
	empty := b.show(t, "/api/v1/dead-letters/2")
	require.Empty(t, empty["value_base64"])
	require.NotNil(t, empty["value_base64"])
	require.NotNil(t, empty["key_base64"])
}

func TestWhatWasNeverSeenIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Contains(t, b.refused(t, "/api/v1/dead-letters/9223372036854775807", http.StatusNotFound)["detail"], "dead letter")
	got := b.refused(t, "/api/v1/events/"+theID(1).String(), http.StatusNotFound)
	require.Contains(t, got["detail"], "never seen")
	require.Equal(t, "/api/v1/events/"+theID(1).String(), got["instance"])
}

func TestTheStoryOfAnEvent(t *testing.T) {
	t.Parallel()
	processed := noon.Add(-time.Minute)
	charge := theCharge(t, 1)
	sighting := &domain.Sighting{EventID: theID(1), Source: domain.Coordinates{Topic: "orders", Partition: 2, Offset: 1}}
	source := map[string]any{"topic": "orders", "partition": 2., "offset": 1.}
	intent := func(state domain.IntentState) *domain.Intent {
		return &domain.Intent{
			EventID: theID(1), OrderID: 1, State: state, Claimed: true, MaybeSent: true, Attempts: 3,
			Owner: "host-1", LeaseUntil: noon.Add(20 * time.Second), DueAt: noon.Add(20 * time.Second),
			CreatedAt: noon, FirstAttemptAt: noon, LastError: "timeout", Record: domain.Record{Coordinates: sighting.Source},
		}
	}
	shownIntent := func(state string, lease any) map[string]any {
		return map[string]any{
			"state": state, "order_id": 1., "claimed": true, "maybe_sent": true, "attempts": 3.,
			"created_at": "2026-03-01T12:00:30Z", "due_at": "2026-03-01T12:00:50Z", "first_attempt_at": "2026-03-01T12:00:30Z",
			"last_error": "timeout", "lease": lease, "source": source,
		}
	}
	for name, test := range map[string]struct {
		story domain.EventStory
		want  map[string]any
	}{
		"captured": {
			domain.EventStory{Sighting: sighting, ProcessedAt: &processed, Charge: &charge},
			map[string]any{"processed": true, "processed_at": "2026-03-01T11:59:30Z", "source": source},
		},
		"captured, and forgotten by retention": {
			domain.EventStory{Charge: &charge},
			map[string]any{"processed": false, "processed_at": nil, "source": nil},
		},
		"being called": {
			domain.EventStory{Sighting: sighting, ProcessedAt: &processed, Intent: intent(domain.Calling)},
			map[string]any{
				"intent": shownIntent("calling", map[string]any{"owner": "host-1", "until": "2026-03-01T12:00:50Z"}),
				"charge": nil,
			},
		},
		"unknown, without a lease": {
			domain.EventStory{Sighting: sighting, ProcessedAt: &processed, Intent: intent(domain.UnknownOutcome)},
			map[string]any{"intent": shownIntent("unknown", nil)},
		},
		"parked": {
			domain.EventStory{
				Sighting: sighting, ProcessedAt: &processed, Intent: intent(domain.Parked),
				Letters: []domain.Letter{theLetter(5, func(l *domain.Letter) {
					l.EventID, l.OrderID, l.Reason = theID(1), 1, domain.ReasonRetriesExhausted
				})},
			},
			map[string]any{"intent": shownIntent("parked", nil), "dead_letters": []any{map[string]any{
				"id": 5., "reason": "retries_exhausted", "detail": "not JSON", "state": "open", "event_id": theID(1).String(),
				"order_id": 1., "group": testGroup, "source": map[string]any{"topic": "orders", "partition": 1., "offset": 5.},
				"timestamp": "2026-03-01T11:00:30Z", "parked_at": "2026-03-01T12:00:30Z",
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			test.story.EventID = theID(1)
			b.archive.stories[theID(1)] = test.story
			b.archive.actions = []domain.Action{{LetterID: 5, Kind: domain.ActionReplay, By: "alice", Result: domain.ResultSentRound, At: noon}}
			got := b.show(t, "/api/v1/events/"+strings.ToUpper(theID(1).String()))
			require.Equal(t, theID(1).String(), got["event_id"])
			for member, want := range test.want {
				require.Equal(t, want, got[member], member)
			}
			require.Equal(t, test.story.Charge != nil, got["charge"] != nil)
			require.Equal(t, test.story.Intent != nil, got["intent"] != nil)
			require.Len(t, got["dead_letters"], len(test.story.Letters))
			require.Len(t, got["actions"], len(test.story.Letters), "what was done to its letters belongs to its story")
		})
	}
}

func TestAnIntentThatWasNeverSentHasNoFirstAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stories[theID(1)] = domain.EventStory{
		EventID: theID(1), Intent: &domain.Intent{State: domain.Waiting, OrderID: 1, CreatedAt: noon, DueAt: noon},
	}
	intent := as[map[string]any](t, b.show(t, "/api/v1/events/"+theID(1).String())["intent"])
	require.Nil(t, intent["first_attempt_at"])
	require.Nil(t, intent["last_error"])
}

func TestADuplicateIsShownWithBothRecords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.log = []domain.Duplicate{
		theDuplicate(1), theDuplicate(2, func(d *domain.Duplicate) { d.First, d.FirstSeenAt = domain.Coordinates{}, time.Time{} }),
	}
	want := map[string]any{
		"id": 1., "event_id": theID(1).String(), "kind": "republished", "seen_at": "2026-03-01T12:01:30Z",
		"source":        map[string]any{"topic": "orders", "partition": 3., "offset": 1001.},
		"first":         map[string]any{"topic": "orders", "partition": 2., "offset": 1.},
		"first_seen_at": "2026-03-01T12:00:30Z",
	}
	items := b.items(t, "/api/v1/dedup/duplicates")
	require.Equal(t, want, items[1])
	unknown := as[map[string]any](t, items[0])
	require.Contains(t, unknown, "first")
	require.Nil(t, unknown["first"])
	require.Nil(t, unknown["first_seen_at"])
}
