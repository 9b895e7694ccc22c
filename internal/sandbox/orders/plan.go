package orders

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"
)

const (
	// MaxRecords bounds a plan. Event ids are a millisecond apart, so the largest plan reaches back 28 hours.
	MaxRecords = 100_000_000
	// MaxDuplicates bounds the share of duplicates.
	MaxDuplicates = 0.9
	// DefaultCustomers is how many customers there are.
	DefaultCustomers = 1000
)

// Options shape a plan; the zero value is a plan without duplicates that starts with order 1.
type Options struct {
	// Seed makes a plan repeatable, together with Start.
	Seed uint64
	// Duplicates is the share of all records that are duplicates, 0 to MaxDuplicates.
	Duplicates float64
	// Conflicts is the share of all records that carry the id of an event with another amount, later on. Together with the duplicates
	// and the invalid ones they are at most MaxDuplicates.
	Conflicts float64
	// Invalid is the share of all records that hold no valid event, and no event id.
	Invalid float64
	// FirstOrderID is the id of the first order, those of the others follow; 0: 1. A CSV file has its own.
	FirstOrderID int64
	// Customers is the number of customers, of whom a few order most (Zipf); 0: DefaultCustomers.
	Customers int64
	// Currencies are those of generated amounts, the first the most frequent; none: EUR, USD, GBP, JPY, KWD.
	Currencies []string
	// Traced gives each record a traceparent header of its own.
	Traced bool
	// Start is when the first order was confirmed, to the millisecond; the others follow 1 ms apart. Zero: so that the last one is confirmed now.
	Start time.Time
}

// Expected is what a plan comes to.
type Expected struct {
	// Records = Unique + Repeated + Republished + Conflicting + Invalid.
	Records, Unique int
	// Repeated records are the same bytes, key and headers once more, right behind the original. Republished ones say the same
	// in other bytes, later on. To a consumer both are the same event at another offset.
	Repeated, Republished int
	// Conflicting records give the id of an event that is out already another meaning. They are to be charged under no circumstances.
	Conflicting int
	// Invalid records hold no valid event, and no event id.
	Invalid int
	// Sums are the amounts of the unique orders per currency, in minor units.
	Sums map[string]int64
}

// Duplicates is the number of duplicates of both kinds.
func (e Expected) Duplicates() int { return e.Repeated + e.Republished }

// order is an order before it is an event.
type order struct {
	id     int64
	amount Amount
}

// Plan is a stream of order events. It is safe for concurrent use.
type Plan struct {
	options  Options
	expected Expected
	orderAt  func(i int) order // a pure function
}

// Generate plans a number of records, round(records × Duplicates) of them duplicates.
func Generate(records int, options Options) (*Plan, error) {
	options = withDefaults(options)
	if err := validate(records, options); err != nil {
		return nil, fmt.Errorf("plan of orders: %w", err)
	}

	source, err := newSource(options)
	if err != nil {
		return nil, fmt.Errorf("plan of orders: %w", err)
	}

	more := moreOf(records, options)

	return newPlan(options, records-more.all(), more, source.order)
}

// more is what comes beside the orders.
type more struct{ duplicates, conflicts, invalid int }

func moreOf(records int, o Options) more {
	share := func(of float64) int { return int(math.Round(float64(records) * of)) }

	return more{share(o.Duplicates), share(o.Conflicts), share(o.Invalid)}
}

func (m more) all() int { return m.duplicates + m.conflicts + m.invalid }

// newPlan works out the expected result and the start.
func newPlan(options Options, unique int, more more, orderAt func(int) order) (*Plan, error) {
	if unique < 1 {
		return nil, errors.New("plan of orders: duplicates only")
	}

	p := &Plan{options: options, orderAt: orderAt}
	p.expected = Expected{
		Records: unique + more.all(), Unique: unique,
		Repeated: (more.duplicates + 1) / 2, Republished: more.duplicates / 2, Conflicting: more.conflicts, Invalid: more.invalid,
		Sums: map[string]int64{},
	}

	for i := range unique {
		if err := add(p.expected.Sums, orderAt(i).amount); err != nil {
			return nil, fmt.Errorf("plan of orders: %w", err)
		}
	}

	if p.options.Start.IsZero() {
		p.options.Start = time.Now().Add(-time.Duration(unique) * time.Millisecond)
	}

	return p, nil
}

// Expected is the result that the plan must lead to.
func (p *Plan) Expected() Expected {
	e := p.expected
	e.Sums = maps.Clone(e.Sums)

	return e
}

func withDefaults(o Options) Options {
	if o.FirstOrderID == 0 {
		o.FirstOrderID = 1
	}

	if o.Customers == 0 {
		o.Customers = DefaultCustomers
	}

	if len(o.Currencies) == 0 {
		o.Currencies = []string{"EUR", "USD", "GBP", "JPY", "KWD"}
	}

	return o
}

// validate returns all complaints.
func validate(records int, o Options) error {
	var errs []error

	if records < 1 || records > MaxRecords {
		errs = append(errs, fmt.Errorf("records %d: not between 1 and %d", records, MaxRecords))
	}

	errs = append(errs, validateOptions(o))

	if o.FirstOrderID < 1 || o.FirstOrderID > math.MaxInt64-MaxRecords {
		errs = append(errs, fmt.Errorf("first order id %d: not between 1 and 2^63-1 less the records", o.FirstOrderID))
	}

	return errors.Join(errs...)
}

// validateOptions checks what concerns every kind of plan.
func validateOptions(o Options) error {
	var errs []error

	// Written so that NaN is refused too.
	if !(o.Duplicates >= 0 && o.Duplicates <= MaxDuplicates) {
		errs = append(errs, fmt.Errorf("duplicates %v: not between 0 and %v of the records", o.Duplicates, MaxDuplicates))
	}

	if !(o.Conflicts >= 0 && o.Invalid >= 0 && o.Duplicates+o.Conflicts+o.Invalid <= MaxDuplicates) {
		errs = append(errs, fmt.Errorf("conflicts %v and invalid ones %v: below zero, or with the duplicates more than %v of the records",
			o.Conflicts, o.Invalid, MaxDuplicates))
	}

	if o.Customers < 1 {
		errs = append(errs, fmt.Errorf("customers %d: not above zero", o.Customers))
	}

	return errors.Join(errs...)
}
