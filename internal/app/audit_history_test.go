package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/audit"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// lookup asks the provider of a test by key.
type lookup struct {
	url    string
	change func(id uuid.UUID, found domain.Found) (domain.Found, error) // nil: as it is
}

func (l lookup) Find(ctx context.Context, key uuid.UUID) (domain.Found, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/v1/charges?idempotencyKey="+key.String(), http.NoBody)
	if err != nil {
		return domain.Found{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return domain.Found{}, err
	}
	defer response.Body.Close()
	found := domain.Found{}
	if response.StatusCode == http.StatusOK {
		var body struct {
			ID       string      `json:"id"`
			Status   string      `json:"status"`
			OrderID  int64       `json:"orderId"`
			Amount   json.Number `json:"amount"`
			Currency string      `json:"currency"`
		}
		if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
			return found, err
		}
		amount, err := domain.ParseMoney(body.Amount.String(), body.Currency)
		if err != nil {
			return found, err
		}
		found = domain.Found{
			Known: true, Status: domain.ChargeStatus(body.Status), ProviderChargeID: body.ID, OrderID: body.OrderID, Amount: amount,
		}
	}
	if l.change != nil {
		return l.change(key, found)
	}
	return found, nil
}

// past is a history with every kind of end in it, written by a service that has
// stopped since.
type past struct {
	*world
	events map[string]order // by what became of them
}

// The orders of a past that end otherwise than by a capture.
const (
	declinedOrder, rejectedOrder, pendingOrder, discardedOrder = 101, 102, 103, 104
)

func history(t *testing.T) *past {
	t.Helper()
	faults, err := paymenttest.ParseFaults(fmt.Sprintf(
		"402=1@order:%d,400=1@order:%d+%d,503=1@order:%d", declinedOrder, rejectedOrder, discardedOrder, pendingOrder))
	require.NoError(t, err)
	h := &past{world: setup(t, 2, faults), events: map[string]order{}}
	var records []*kgo.Record
	put := func(name string, partition int32, o order) {
		if name != "" {
			h.events[name] = o
		}
		records = append(records, h.record(partition, []byte(o.json())))
	}
	for n := range int64(20) {
		put(fmt.Sprintf("captured %d", n), int32(n%2), newOrder(n+1))
	}
	put("declined", 0, newOrder(declinedOrder))
	put("rejected", 0, newOrder(rejectedOrder))
	put("pending", 1, newOrder(pendingOrder))
	put("discarded", 1, newOrder(discardedOrder))
	records = append(records, h.record(0, []byte(`{"broken":`)))
	h.produce(records...)
	running := h.start(nil)
	h.reached()

	records = nil
	for n := range 4 { // repeated here and there
		put("", int32(n%2), h.events[fmt.Sprintf("captured %d", 10+n)])
		put("", int32(1-n%2), h.events[fmt.Sprintf("captured %d", 10+n)])
	}
	put("duplicate order", 0, newOrder(h.events["captured 3"].order))
	conflict := newOrder(h.events["captured 4"].order)
	conflict.amount = "99.00"
	put("order conflict", 1, conflict)
	other := h.events["captured 5"]
	other.amount = "77.00"
	records = append(records, h.record(1, []byte(other.json()))) // another meaning
	h.produce(records...)
	h.abort(0, newOrder(900))
	h.reached()
	running.Stop()
	h.discard(h.events["discarded"])
	h.produce(h.record(0, []byte(newOrder(501).json())), h.record(1, []byte(newOrder(502).json()))) // nobody is there
	h.db.Close()
	return h
}

// reached waits until every record is committed.
func (w *world) reached() {
	w.t.Helper()
	w.eventually("lag 0, and nothing in flight", func() bool {
		return w.lag() == 0 && w.count(`SELECT count(*) FROM charge_intent WHERE state IN ('calling', 'answered')`) == 0
	})
}

// abort writes an event in a transaction that is given up.
func (w *world) abort(partition int32, o order) {
	w.t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.TransactionalID(w.group), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(w.t, err)
	defer producer.Close()
	require.NoError(w.t, producer.BeginTransaction())
	require.NoError(w.t, producer.ProduceSync(w.t.Context(), w.record(partition, []byte(o.json()))).FirstErr())
	require.NoError(w.t, producer.EndTransaction(w.t.Context(), kgo.TryAbort))
}

// discard ends an event as an operator does.
func (w *world) discard(o order) {
	w.t.Helper()
	for _, sql := range []string{
		`INSERT INTO charge SELECT event_id, order_id, 7, 10.50, 'EUR', 'discarded', NULL, NULL, attempts, false, '2026-11-29T12:00:00Z',
			now(), fingerprint, source_topic, source_partition, source_offset FROM charge_intent WHERE event_id = $1`,
		`DELETE FROM charge_intent WHERE event_id = $1`,
		`UPDATE dead_letter SET state = 'discarded' WHERE event_id = $1`,
		`UPDATE dedup_stat SET discarded = discarded + 1 WHERE partition = 1 AND minute = (SELECT max(minute) FROM dedup_stat WHERE partition = 1)
			AND $1::uuid IS NOT NULL`,
	} {
		_, err := w.db.Exec(w.t.Context(), sql, o.id)
		require.NoError(w.t, err)
	}
}

// audit audits a database as it is, without much of a pause before the second look.
func (h *past) audit(t *testing.T, url string, finder domain.Finder, change ...func(*audit.Options)) audit.Report {
	t.Helper()
	s, err := store.New(storetest.Config(url))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }() // at once: a database that is in use cannot be copied
	return h.auditOf(t, s, finder, change...)
}

// auditOf audits what books say.
func (h *past) auditOf(t *testing.T, books domain.Witness, finder domain.Finder, change ...func(*audit.Options)) audit.Report {
	t.Helper()
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Topic, cfg.GroupID = h.brokers, h.topic, h.group
	topic, err := kafka.NewAuditReader(cfg, slog.New(slog.DiscardHandler), domain.SystemClock{})
	require.NoError(t, err)
	o := audit.Options{Group: h.group, Retention: 168 * time.Hour, Keep: 100, Recheck: 10 * time.Millisecond}
	for _, c := range change {
		c(&o)
	}
	report, err := audit.New(o, topic, books, finder, domain.SystemClock{}).Run(t.Context(), h.topic)
	require.NoError(t, errors.Join(err, topic.Close()))
	return report
}

// environ is that of billing audit.
func (h *past) environ() []string {
	return []string{
		"KAFKA_BROKERS=" + strings.Join(h.brokers, ","), "KAFKA_TOPIC=" + h.topic, "KAFKA_GROUP_ID=" + h.group,
		"DATABASE_URL=" + h.url, "PAYMENT_URL=" + h.payURL,
	}
}
