package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the service tells goes to topics of the run's own, which begin empty as its
// orders' topic does.
func eventsTopic(topic string) string { return topic + ".charges" }
func dlqTopic(topic string) string    { return topic + ".dlq" }

// Outcome is an event that tells of a charge.
type Outcome struct {
	Type       string
	OrderEvent uuid.UUID
	OrderID    int64
	Amount     *big.Rat // in major units
	Currency   string
}

// Outcomes are the events of the outcome topic.
type Outcomes struct {
	Records int64
	Events  map[uuid.UUID]Outcome // by event id; a repetition changes nothing
	Strange int64                 // that are no outcome events, or have the id of another one
}

// Told are the records of the dead letters' topic.
type Told struct {
	Records int64
	Letters map[string]string // the reason last told, by topic/partition@offset
}

// take reads a record of the outcome topic.
func (o *Outcomes) take(r *kgo.Record) {
	o.Records++
	var e struct {
		EventID      uuid.UUID   `json:"eventId"`
		EventType    string      `json:"eventType"`
		OrderEventID uuid.UUID   `json:"orderEventId"`
		OrderID      int64       `json:"orderId"`
		Amount       json.Number `json:"amount"`
		Currency     string      `json:"currency"`
	}
	if err := json.Unmarshal(r.Value, &e); err != nil {
		o.Strange++
		return
	}
	amount, ok := new(big.Rat).SetString(e.Amount.String())
	if !ok || string(r.Key) != strconv.FormatInt(e.OrderID, 10) {
		o.Strange++
		return
	}
	told := Outcome{Type: e.EventType, OrderEvent: e.OrderEventID, OrderID: e.OrderID, Amount: amount, Currency: e.Currency}
	if before, known := o.Events[e.EventID]; known && !before.same(told) {
		o.Strange++
		return
	}
	o.Events[e.EventID] = told
}

func (o Outcome) same(p Outcome) bool {
	return o.Type == p.Type && o.OrderEvent == p.OrderEvent && o.OrderID == p.OrderID && o.Currency == p.Currency && o.Amount.Cmp(p.Amount) == 0
}

// take reads a record of the dead letters' topic.
func (t *Told) take(r *kgo.Record) {
	t.Records++
	last := make(map[string]string)
	for _, h := range r.Headers {
		last[h.Key] = string(h.Value)
	}
	at := last["billing-dlq-topic"] + "/" + last["billing-dlq-partition"] + "@" + last["billing-dlq-offset"]
	t.Letters[at] = last["billing-dlq-reason"]
}

// told reads both topics, so far as something is published there.
func (p *parts) told(ctx context.Context) (o Outcomes, t Told, err error) {
	o, t = Outcomes{Events: make(map[uuid.UUID]Outcome)}, Told{Letters: make(map[string]string)}
	if events, some := p.options.publishes("KAFKA_EVENTS_TOPIC", eventsTopic(p.options.Topic)); !some {
		o.Events = nil
	} else if err = p.watcher.of(events).each(ctx, o.take); err != nil {
		return o, t, err
	}
	if letters, some := p.options.publishes("KAFKA_DLQ_TOPIC", dlqTopic(p.options.Topic)); !some {
		t.Letters = nil
	} else if err = p.watcher.of(letters).each(ctx, t.take); err != nil {
		return o, t, err
	}
	return o, t, nil
}

// publishes returns the topic of a setting, and whether there is one: the run's own
// unless the caller gave another, or none.
func (o *Options) publishes(setting, own string) (topic string, some bool) {
	topic = own
	for _, pair := range o.Env {
		if name, value, _ := strings.Cut(pair, "="); name == setting {
			topic = value
		}
	}
	return topic, topic != ""
}

// of looks at another topic.
func (w *watcher) of(topic string) *watcher {
	other := *w
	other.topic = topic
	return &other
}

// unpublished reports whether something waits in the outbox.
func (b *books) unpublished(ctx context.Context) (some bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err = b.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox AS o, outbox_cursor AS c WHERE (o.xid, o.id) > (c.xid, c.id))`).Scan(&some)
	if err != nil {
		return false, fmt.Errorf("look into the outbox: %w", err)
	}
	return some, nil
}
