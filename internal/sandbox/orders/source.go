package orders

import "math/rand/v2"

// Streams of random numbers: one per purpose, so that a change in one leaves the others as they are.
const (
	streamOrder = iota + 1
	streamID
	streamTrace
	streamCustomer
	streamSchedule
	streamTwin
	streamOdd
)

// random returns the random numbers of one purpose and one record. They must be repeatable, and guard nothing.
func random(seed uint64, stream, i int) *rand.Rand {
	const golden = 0x9E3779B97F4A7C15 // spreads neighbouring streams

	return rand.New(rand.NewPCG(seed+uint64(stream)*golden, uint64(i))) //nolint:gosec // see above
}

// source generates orders.
type source struct {
	options   Options
	exponents []int
}

func newSource(options Options) (*source, error) {
	s := &source{options: options}

	for _, code := range options.Currencies {
		digits, err := exponent(code)
		if err != nil {
			return nil, err
		}

		s.exponents = append(s.exponents, digits)
	}

	return s, nil
}

// order is the i-th order: its currency by falling weights (5, 4, 3, 2, 1 of five), its amount between 1 and 500 of the major unit,
// or between 100 and 50,000 where there is no smaller one.
func (s *source) order(i int) order {
	r := random(s.options.Seed, streamOrder, i)
	n := len(s.exponents)
	pick := r.IntN(n * (n + 1) / 2)
	at := 0

	for weight := n; pick >= weight; weight-- {
		pick -= weight
		at++
	}

	unit := int64(100)
	for range s.exponents[at] - 2 {
		unit *= 10
	}

	return order{
		id:     s.options.FirstOrderID + int64(i),
		amount: Amount{Minor: unit + r.Int64N(499*unit+1), Currency: s.options.Currencies[at]},
	}
}

// customer is who placed the i-th order.
func customer(o Options, i int) int64 {
	const skew, shift = 1.1, 1

	zipf := rand.NewZipf(random(o.Seed, streamCustomer, i), skew, shift, uint64(o.Customers-1))

	return int64(zipf.Uint64()) + 1
}
