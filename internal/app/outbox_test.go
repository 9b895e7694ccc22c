package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment/paymenttest"
)

func (w *world) eventsTopic() string { return w.topic + ".charges" }
func (w *world) dlqTopic() string    { return w.topic + ".dlq" }

// read reads a topic from its beginning until enough of it was seen.
func (w *world) read(topic string, enough func([]*kgo.Record) bool) []*kgo.Record {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.UnknownTopicRetries(-1))
	require.NoError(w.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for !enough(records) {
		fetches := client.PollFetches(ctx)
		require.NoError(w.t, ctx.Err(), "%d records came\n%s", len(records), w.running())
		records = append(records, fetches.Records()...)
	}
	return records
}

// told is an outcome event.
type told struct {
	EventID      uuid.UUID   `json:"eventId"`
	EventType    string      `json:"eventType"`
	OrderID      int64       `json:"orderId"`
	Amount       json.Number `json:"amount"`
	Currency     string      `json:"currency"`
	OrderEventID uuid.UUID   `json:"orderEventId"`
}

// outcomes reads the outcome topic until n different events have come.
func (w *world) outcomes(n int) map[uuid.UUID]told {
	w.t.Helper()
	byID := map[uuid.UUID]told{}
	w.read(w.eventsTopic(), func(records []*kgo.Record) bool {
		for _, r := range records {
			var e told
			require.NoError(w.t, json.Unmarshal(r.Value, &e))
			byID[e.EventID] = e
		}
		return len(byID) >= n
	})
	return byID
}

func TestEachOutcomeIsPublishedOnceInEffect(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testEachOutcomeIsPublishedOnceInEffect)
}

func testEachOutcomeIsPublishedOnceInEffect(t *testing.T, offsets string) {
	t.Helper()
	const orders = 300
	w := setupIn(t, offsets, 3, mustFaults(t, "402=0.2"))
	var records []*kgo.Record
	for n := range int64(orders) {
		o := newOrder(n + 1)
		r := w.record(int32(n%3), []byte(o.json()))
		if n == 0 {
			r.Headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")}}
		}
		again := *r // the client writes into what it produces
		records = append(records, r, &again)
	}
	w.produce(records...)
	one, two := w.start(nil), w.start(nil)
	w.settled()
	outcomes := w.outcomes(orders)
	one.Stop()
	two.Stop()

	require.Len(t, outcomes, orders)
	rows, err := w.db.Query(t.Context(), `SELECT event_id, order_id, amount::text, currency, status FROM charge`)
	require.NoError(t, err)
	charges := 0
	for rows.Next() {
		var id uuid.UUID
		var order int64
		var amount, currency, status string
		require.NoError(t, rows.Scan(&id, &order, &amount, &currency, &status))
		eventType := "billing.charge-" + status + ".v1"
		e, ok := outcomes[domain.OutcomeEventID(eventType, id)]
		require.True(t, ok, "%s of order %d", status, order)
		require.Equal(t, eventType, e.EventType)
		require.Equal(t, id, e.OrderEventID)
		require.Equal(t, order, e.OrderID)
		require.Equal(t, currency, e.Currency)
		ours, _ := new(big.Rat).SetString(amount)
		theirs, _ := new(big.Rat).SetString(e.Amount.String())
		require.Zero(t, ours.Cmp(theirs))
		charges++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, orders, charges)
	all := w.read(w.eventsTopic(), func(r []*kgo.Record) bool { return len(r) >= orders })
	traced := 0
	for _, r := range all {
		require.NotEmpty(t, r.Key)
		traced += len(r.Headers)
	}
	require.Equal(t, 1, traced, "the trace of the order event goes on in its outcome")
}

func TestADeadLetterIsPublishedWithItsBytesAndTheReason(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	bad := w.record(0, []byte("{\xff"))
	bad.Key, bad.Headers = []byte("key"), []kgo.RecordHeader{{Key: "h", Value: []byte{0xfe}}}
	w.produce(bad, w.record(0, nil))
	s := w.start(nil)
	letters := w.read(w.dlqTopic(), func(r []*kgo.Record) bool { return len(r) >= 2 })
	s.Stop()
	byReason := map[string]*kgo.Record{}
	for _, r := range letters {
		byReason[header(r, "billing-dlq-reason")] = r
	}
	got := byReason["invalid_utf8"]
	require.NotNil(t, got, byReason)
	require.Equal(t, bad.Key, got.Key)
	require.Equal(t, bad.Value, got.Value)
	require.Equal(t, bad.Headers[0], got.Headers[0])
	require.Equal(t, w.topic, header(got, "billing-dlq-topic"))
	require.Equal(t, "0", header(got, "billing-dlq-offset"))
	require.Nil(t, byReason["invalid_tombstone"].Value)
	require.EqualValues(t, 2, w.count(`SELECT count(*) FROM dead_letter`))
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// A dead letter may be larger than its topic takes, and then there is only the
// table's copy of it.
func TestALetterThatItsTopicRefusesIsShownAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	size := "1048588" // as brokers have it, unless configured
	created, err := w.admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &size}, w.dlqTopic())
	require.NoError(t, err)
	require.NoError(t, created.Err)
	large := w.record(0, bytes.Repeat([]byte("x"), 2<<20))
	w.produce(large, w.record(0, []byte("{")), w.record(0, []byte(newOrder(1).json())))
	s := w.start(nil)
	w.read(w.dlqTopic(), func(r []*kgo.Record) bool { return len(r) == 1 && string(r[0].Value) == "{" })
	w.outcomes(1)
	w.eventually("it is kept aside", func() bool {
		return w.count(`SELECT count(*) FROM outbox_refused WHERE length(value) = 2 << 20 AND kind = 'dead_letter'`) == 1
	})
	w.eventually("health shows it", func() bool {
		component := s.component("relay")
		return component.Status == "warn" && strings.Contains(component.Reason, "refused")
	})
	require.Equal(t, http.StatusOK, s.get("/readyz", nil), "charging goes on without it")
	require.Contains(t, s.scrape(), "billing_outbox_refused")
}

func TestAnotherInstancePublishesWhenTheFirstOnesSessionDies(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	w.start(nil)
	w.start(nil)
	for round := range int64(4) {
		w.produce(w.record(0, []byte(newOrder(round+1).json())))
		require.Len(t, w.outcomes(int(round)+1), int(round)+1)
		require.EqualValues(t, 1, w.count(`SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted
			AND datname = current_database() AND application_name = 'billing-relay'`))
		before := w.count(`SELECT epoch FROM outbox_cursor`)
		w.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'billing-relay'`)
		w.eventually("somebody took over", func() bool { return w.count(`SELECT epoch FROM outbox_cursor`) > before })
	}
}

func TestNothingIsPublishedWithoutATopic(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	w.produce(w.record(0, []byte("{")), w.record(0, []byte(newOrder(1).json())))
	s := w.start(map[string]string{"KAFKA_EVENTS_TOPIC": "", "KAFKA_DLQ_TOPIC": ""})
	w.settled()
	require.EqualValues(t, 1, s.stats().Captured)
	require.Zero(t, w.count(`SELECT count(*) FROM outbox`))
	var health struct{ Components []component }
	s.get("/healthz", &health)
	for _, c := range health.Components {
		require.NotEqual(t, "relay", c.Name)
	}
	topics, err := w.admin.ListTopics(t.Context())
	require.NoError(t, err)
	require.NotContains(t, topics.Names(), w.eventsTopic())
	require.NotContains(t, topics.Names(), w.dlqTopic())
}
