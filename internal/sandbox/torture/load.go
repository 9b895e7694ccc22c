package torture

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"example.com/billing/internal/sandbox/orders"
	"example.com/billing/internal/sandbox/run"
)

const (
	// chunkSeconds is how much of the stream is planned at a time.
	chunkSeconds = 2
	minChunk     = 20
	// duplicates is the share of a chunk's records that are duplicates, byte for byte or encoded anew.
	duplicates = 0.25
	// One of so many orders has a second event with the same amount, one with another
	// amount; and there is one bad record for so many good ones.
	twiceIn, otherwiseIn, badIn = 12, 40, 40
	// How often, and for how long, the producers ask a broker that is away.
	patience   = 1000
	patientFor = 2 * time.Minute
)

// load is the stream of orders.
type load struct {
	brokers []string
	seed    uint64
	rate    float64

	mu   sync.Mutex
	sent run.Sent
}

// soFar is what was sent by now.
func (l *load) soFar() run.Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// run sends chunk after chunk until stop is closed: the one in progress is sent whole.
func (l *load) run(ctx context.Context, stop <-chan struct{}) error {
	l.sent.Totals = run.Totals{}
	size := max(minChunk, int(l.rate*chunkSeconds))
	first := int64(1)
	for chunk := uint64(0); ; chunk++ {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		began := time.Now()
		orders, err := l.chunk(ctx, chunk, size, first)
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		first += orders
		pause(ctx, chunkSeconds*time.Second-time.Since(began))
	}
}

// chunk sends orders with their duplicates, second events of some of them, and bad
// records, all at once. It returns how many orders there were.
func (l *load) chunk(ctx context.Context, chunk uint64, size int, first int64) (int64, error) {
	start := time.Now().Truncate(time.Millisecond)
	// The amounts follow from seed and order: another seed gives the same orders other amounts.
	seed, other := l.seed+3*chunk, l.seed+3*chunk+1
	plan := func(records int, seed uint64, duplicates float64, at time.Time) (*orders.Plan, error) {
		return orders.Generate(max(1, records), orders.Options{
			Seed: seed, Duplicates: duplicates, FirstOrderID: first, Traced: true, Start: at,
		})
	}
	main, err := plan(size, seed, duplicates, start)
	if err != nil {
		return 0, err
	}
	twice, err := plan(size/twiceIn, seed, 0, start.Add(-time.Hour))
	if err != nil {
		return 0, err
	}
	otherwise, err := plan(size/otherwiseIn, other, 0, start.Add(-2*time.Hour))
	if err != nil {
		return 0, err
	}
	together, ctx := errgroup.WithContext(ctx)
	for _, p := range []*orders.Plan{main, twice, otherwise} {
		together.Go(func() error { return l.send(ctx, p) })
	}
	together.Go(func() error { return l.bad(ctx, seed, max(1, size/badIn)) })
	return int64(main.Expected().Unique), together.Wait()
}

// patient are the options of a client that goes past the link, whatever address it is
// told, and that waits for a broker that is away.
func (l *load) patient() []kgo.Opt {
	return []kgo.Opt{
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, l.brokers[0])
		}),
		kgo.RequestRetries(patience), kgo.RetryTimeout(patientFor),
	}
}

func (l *load) send(ctx context.Context, plan *orders.Plan) error {
	e := plan.Expected()
	if _, err := orders.Produce(ctx, l.brokers, topic, plan, orders.ProduceOptions{Rate: l.rate, Client: l.patient()}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent.Records += int64(e.Records)
	l.sent.Unique += int64(e.Unique)
	l.sent.Same += int64(e.Repeated)
	l.sent.Republished += int64(e.Republished)
	for code, minor := range e.Sums {
		if l.sent.Totals[code] == nil {
			l.sent.Totals[code] = new(big.Int)
		}
		l.sent.Totals[code].Add(l.sent.Totals[code], big.NewInt(minor))
	}
	return nil
}

// bad sends records that hold no valid event, and no event id.
func (l *load) bad(ctx context.Context, seed uint64, n int) error {
	client, err := kgo.NewClient(append(l.patient(), kgo.SeedBrokers(l.brokers...), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()))...)
	if err != nil {
		return fmt.Errorf("bad records: %w", err)
	}
	defer client.Close()
	dice := rand.New(rand.NewPCG(seed, streamLoad)) //nolint:gosec // repeatable on purpose
	for range n {
		r := &kgo.Record{Key: fmt.Append(nil, dice.IntN(1000))}
		switch dice.IntN(4) {
		case 0: // a tombstone
		case 1:
			r.Value = []byte(`{"eventId":`)
		case 2:
			r.Value = []byte(`{"orderId":7,"customerId":1,"totalAmount":1.00,"currency":"EUR"}`)
		case 3:
			r.Value = []byte{0xff, 0xfe, byte(dice.IntN(256))}
		}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return fmt.Errorf("bad records: %w", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent.Records += int64(n)
	l.sent.Invalid += int64(n)
	return nil
}
