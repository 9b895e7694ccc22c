package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"time"

	"example.com/billing/internal/sandbox/orders"
)

const (
	// chunkSeconds is how much of an endless stream is planned at a time; its end waits for the chunk in progress.
	chunkSeconds = 2
	// minChunk is the smallest plan that a fifth of duplicates divides.
	minChunk = 10
)

// Source says which orders are produced.
type Source struct {
	// File is a CSV of orders (order_id,total_amount,currency), produced once.
	File string
	// Records is how many are generated; 0 without a File: an endless stream.
	Records int
	// Duplicates is the share of all records that are duplicates.
	Duplicates float64
	// Conflicts is the share of all records that give the id of an event another amount.
	Conflicts float64
	// Invalid is the share of all records that hold no valid event.
	Invalid float64
	// Rate is in records per second; 0: as fast as they go, which an endless stream must not.
	Rate float64
	Seed uint64
	// FirstOrder is the id of the first generated order, those of the others follow.
	FirstOrder int64
}

// Endless reports whether the source has no end of its own.
func (s Source) Endless() bool { return s.File == "" && s.Records == 0 }

// Validate checks what the plan does not.
func (s Source) Validate() error {
	switch {
	case s.File != "" && s.Records != 0:
		return errors.New("orders of a file are counted by the file: give --orders or --records")
	case s.Records < 0:
		return errors.New("--records must not be negative")
	case s.Rate < 0 || math.IsNaN(s.Rate) || math.IsInf(s.Rate, 0):
		return errors.New("--rate must be a number, zero or above")
	case s.Endless() && s.Rate == 0:
		return errors.New("an endless stream needs a --rate above zero")
	}
	return nil
}

// Plan is what a source with an end comes to.
func (s Source) Plan() (*orders.Plan, error) {
	options := s.options(0, s.FirstOrder)
	if s.File == "" {
		return orders.Generate(s.Records, options)
	}
	file, err := os.Open(s.File)
	if err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	defer file.Close()
	return orders.FromCSV(file, options)
}

func (s Source) options(chunk uint64, first int64) orders.Options {
	return orders.Options{Seed: s.Seed + chunk, Duplicates: s.Duplicates, Conflicts: s.Conflicts, Invalid: s.Invalid, FirstOrderID: first, Traced: true}
}

// Producer produces the orders of a source.
type Producer struct {
	Source   Source
	Brokers  []string
	Topic    string
	Progress func(records int64) // told the records so far; may be nil
	// Hold is asked before each record of a source with an end is sent, by its number from 0, and
	// may wait; nil: nothing is held back.
	Hold func(ctx context.Context, record int) error
	plan *orders.Plan // of a source with an end
}

// NewProducer plans what has an end, so that a bad file is found before anything starts.
func NewProducer(source Source) (*Producer, error) {
	if err := source.Validate(); err != nil {
		return nil, err
	}
	p := &Producer{Source: source, Progress: func(int64) {}}
	if source.Endless() {
		return p, nil
	}
	plan, err := source.Plan()
	p.plan = plan
	return p, err
}

// Expected is the number of records and unique events; zero for an endless source.
func (p *Producer) Expected() (records, unique int64) {
	if p.plan == nil {
		return 0, 0
	}
	e := p.plan.Expected()
	return int64(e.Records), int64(e.Unique)
}

// Produce sends everything, or an endless source until stop is closed: the chunk
// in progress is finished, so that what was sent is known exactly. The end of ctx
// breaks off with an error.
func (p *Producer) Produce(ctx context.Context, stop <-chan struct{}) (Sent, error) {
	sent := Sent{Totals: make(Totals)}
	if p.plan != nil {
		return sent, p.send(ctx, &sent, p.plan)
	}
	first := max(p.Source.FirstOrder, 1)
	size := max(minChunk, int(p.Source.Rate*chunkSeconds))
	for chunk := uint64(0); ; chunk++ {
		select {
		case <-stop:
			return sent, nil
		case <-ctx.Done():
			return sent, context.Cause(ctx)
		default:
		}
		plan, err := orders.Generate(size, p.Source.options(chunk, first+sent.Unique))
		if err != nil {
			return sent, err
		}
		if err := p.send(ctx, &sent, plan); err != nil {
			return sent, err
		}
	}
}

func (p *Producer) send(ctx context.Context, sent *Sent, plan *orders.Plan) error {
	began := time.Now()
	before := sent.Records
	options := orders.ProduceOptions{Rate: p.Source.Rate, Hold: p.Hold, Progress: func(n int) { p.Progress(before + int64(n)) }}
	if _, err := orders.Produce(ctx, p.Brokers, p.Topic, plan, options); err != nil {
		return err
	}
	e := plan.Expected()
	sent.Records += int64(e.Records)
	sent.Unique += int64(e.Unique)
	sent.Same += int64(e.Repeated)
	sent.Republished += int64(e.Republished)
	sent.Conflicting += int64(e.Conflicting)
	sent.Invalid += int64(e.Invalid)
	for code, minor := range e.Sums {
		if sent.Totals[code] == nil {
			sent.Totals[code] = new(big.Int)
		}
		sent.Totals[code].Add(sent.Totals[code], big.NewInt(minor))
	}
	return p.pace(ctx, began, e.Records)
}

// pace waits until the next chunk is due: the last record of a plan has a share of the rate too.
func (p *Producer) pace(ctx context.Context, began time.Time, records int) error {
	if !p.Source.Endless() {
		return nil
	}
	return sleep(ctx, time.Until(began.Add(time.Duration(float64(records)/p.Source.Rate*float64(time.Second)))))
}

// sleep waits, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
