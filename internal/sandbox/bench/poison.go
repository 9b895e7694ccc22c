package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/orders"
)

const (
	// poisonRecords are the records around the poison.
	poisonRecords = 10_000
	// poisonOrders is above the orders of a load, and below those of the next.
	poisonOrders = ordersApart - 1000
	// poisonCurrency is one that no plan uses: what is taken for poison is not among the sums.
	poisonCurrency = "CHF"
)

// poison is what a single record in the middle of a load does to the sums, and what makes it poisonous. The
// zero value is none.
type poison struct {
	kind string
	id   uuid.UUID
	// order is above those of the load.
	order int64
	// counts: whether the event is valid, sent, and paid.
	valid, sent, captured bool
	broken                bool // it is no JSON
	// faults are the provider's, trigger is what the database refuses; of ORDER and EVENT.
	faults, trigger string
}

// poisons are all kinds there are.
func poisons() []poison {
	return []poison{
		{},
		{kind: "no JSON", broken: true},
		{kind: "the provider answers 400", valid: true, sent: true, faults: "400=1@order:ORDER"},
		{kind: "the provider answers 422", valid: true, sent: true, faults: "422=1@order:ORDER"},
		{kind: "the database refuses the event", trigger: `processed_event FOR EACH ROW WHEN (NEW.event_id = 'EVENT')`},
		{kind: "the database refuses the charge", valid: true, sent: true, captured: true, trigger: `charge FOR EACH ROW WHEN (NEW.order_id = ORDER)`},
	}
}

// name is what the table calls it.
func (p *poison) name() string {
	if p.kind == "" {
		return "none"
	}
	return p.kind
}

// spelt puts the poison's order and event in.
func (p *poison) spelt(text string) string {
	return strings.NewReplacer("ORDER", strconv.FormatInt(p.order, 10), "EVENT", p.id.String()).Replace(text)
}

// record is the poisonous one.
func (p *poison) record(topic string) *kgo.Record {
	value := fmt.Sprintf(`{"eventId":%q,"eventType":"order.confirmed.v1","occurredAt":%q,"orderId":%d,"customerId":7,"totalAmount":10.50,"currency":%q}`,
		p.id, time.Now().UTC().Format(time.RFC3339), p.order, poisonCurrency)
	if p.broken {
		value = strings.TrimSuffix(value, "}")
	}
	return &kgo.Record{Topic: topic, Key: fmt.Append(nil, p.order), Value: []byte(value)}
}

// discount takes the poison's share, exactly, out of what was counted.
func (p *poison) discount(n *counted, l *paymenttest.Ledger) {
	one := func(of ...*int64) {
		for _, sum := range of {
			*sum--
		}
	}
	if p.kind == "" {
		return
	}
	one(&n.received, &n.letters)
	if p.valid {
		one(&n.processed)
	}
	if p.sent {
		one(&l.Posts)
	}
	if p.captured {
		one(&l.Captures)
	}
}

// spoil makes a load of so many records with the poison in the middle.
func (w *World) spoil(ctx context.Context, records int, partitions int32, p poison) (*load, error) {
	l, err := w.newLoad(ctx, records, partitions)
	if err != nil {
		return nil, err
	}
	p.order = int64(w.serial)*ordersApart + poisonOrders
	if p.id, err = uuid.NewV7(); err != nil {
		return nil, fmt.Errorf("poison: %w", err)
	}
	l.poison = p
	_, err = orders.Produce(ctx, strings.Split(w.brokers, ","), l.topic, l.plan, orders.ProduceOptions{
		Hold: func(ctx context.Context, record int) error {
			if p.kind == "" || record != records/2 {
				return nil
			}
			return w.kafka.ProduceSync(ctx, p.record(l.topic)).FirstErr()
		},
	})
	return l, err
}

// refusing makes a migrated database that refuses what the poison says.
func (w *World) refusing(ctx context.Context, p *poison) (database string, err error) {
	database = w.name("bench")
	if err := w.fill(ctx, database, 0); err != nil || p.trigger == "" {
		return database, err
	}
	return database, w.books.with(ctx, database, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION SQLSTATE '22000'; END $$;
			CREATE TRIGGER refuse BEFORE INSERT ON `+p.spelt(p.trigger)+` EXECUTE FUNCTION refuse()`)
		return err
	})
}

// poison is one record that can never be charged, in the middle of a stream: what does it cost the others?
func (b *bench) poison(ctx context.Context, name string) error {
	var loads []*load
	for _, p := range poisons() {
		l, err := b.spoil(ctx, b.options.scaled(poisonRecords), b.options.Partitions, p)
		if err != nil {
			return err
		}
		loads = append(loads, l)
	}
	for round := 1; round <= b.options.Rounds; round++ {
		for i := range loads {
			l := loads[(i+round)%len(loads)] // none of them is always the first
			if err := b.poisoned(ctx, name, round, l); err != nil {
				return err
			}
		}
	}
	none := b.report.of(with(name, &loads[0].poison), Billing).median(rate)
	for _, l := range loads {
		row := Row{Scenario: name, Figure: "charges/s, poison: " + l.poison.name(), Billing: b.report.of(with(name, &l.poison), Billing).median(rate)}
		if l != loads[0] {
			row.Measured, row.Unit = ratio(row.Billing, none), "× without"
		}
		b.add(row)
	}
	return nil
}

func with(name string, p *poison) string { return name + " " + p.name() }

// poisoned measures one load.
func (b *bench) poisoned(ctx context.Context, name string, round int, l *load) (err error) {
	database, err := b.refusing(ctx, &l.poison)
	if database != "" {
		defer func() { err = errors.Join(err, b.books.drop(context.WithoutCancel(ctx), database)) }()
	}
	if err != nil {
		return err
	}
	return b.once(ctx, task{
		scenario: with(name, &l.poison), mode: Billing, round: round, faults: l.poison.spelt(l.poison.faults), load: l, database: database,
	})
}
