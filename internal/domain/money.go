package domain

// Currency is an ISO 4217 currency that money can be charged in.
// The zero value is no currency.
type Currency struct {
	code     string
	exponent uint8
}

// Code returns the alphabetic code, "EUR".
func (c Currency) Code() string { return c.code }

// Exponent returns the number of fraction digits by ISO 4217: JPY 0, EUR 2, KWD 3.
func (c Currency) Exponent() int { return int(c.exponent) }

// Money is an exact amount in the minor unit of its currency. Two equal amounts
// compare equal with ==. It is never a float.
type Money struct {
	minor    uint64
	currency Currency
}

// Minor returns the amount in minor units (cents for EUR).
func (m Money) Minor() uint64 { return m.minor }

// Currency returns the currency.
func (m Money) Currency() Currency { return m.currency }
