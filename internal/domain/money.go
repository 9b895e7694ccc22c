package domain

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
	"github.com/cockroachdb/apd/v3"
)

const (
	// MaxAmountBytes bounds the literal of an amount. It is generous because zeros
	// without meaning are dropped, and small because nothing else limits the work.
	MaxAmountBytes = 256

	// maxAmountDigits is the number of integer digits: every amount is below 10^15.
	maxAmountDigits = 15

	// maxExponent is the largest ISO 4217 exponent (CLF, UYW). 10^15 in the minor
	// unit of such a currency is 10^19, which uint64 holds and int64 does not.
	maxExponent = 4

	// maxScale bounds the exponent part of a literal (1e512). A literal of
	// MaxAmountBytes cannot make up for a larger one: the amount is beyond every
	// bound, whatever its digits are, unless they are all zero.
	maxScale = 2 * MaxAmountBytes
)

// Currency is an ISO 4217 currency that money can be charged in.
// The zero value is no currency.
type Currency struct {
	code     string
	exponent uint8
}

// ParseCurrency returns the currency of an ISO 4217 alphabetic code in upper
// case. Codes without a minor unit (XAU, XXX) are no currency to charge in.
// The error is an [*InvalidError] with [ReasonCurrency].
func ParseCurrency(code string) (Currency, error) {
	cur, fault := parseCurrency(code)
	if fault != nil {
		return Currency{}, fault
	}
	return cur, nil
}

func parseCurrency(code string) (Currency, *InvalidError) {
	digits, ok := currency.GetDigits(code)
	if !ok || digits > maxExponent {
		return Currency{}, invalid(ReasonCurrency, fieldCurrency, "not an ISO 4217 currency code")
	}
	return Currency{code: code, exponent: digits}, nil
}

// Code returns the alphabetic code, "EUR".
func (c Currency) Code() string { return c.code }

// Exponent returns the number of fraction digits by ISO 4217: JPY 0, EUR 2, KWD 3.
func (c Currency) Exponent() int { return int(c.exponent) }

// Money is an exact amount in the minor unit of its currency, above zero and
// below 10^15 of the major unit. Two equal amounts compare equal with ==. It is
// never a float. The zero value is no money.
type Money struct {
	minor    uint64
	currency Currency
}

// NewMoney returns an amount given in minor units (cents for EUR). The error is
// an [*InvalidError] with the reason that the currency or the bounds of [Money] give.
func NewMoney(minor uint64, code string) (Money, error) {
	cur, err := ParseCurrency(code)
	if err != nil {
		return Money{}, err
	}
	if minor == 0 {
		return Money{}, errNotPositive()
	}
	if minor >= pow10(maxAmountDigits+cur.Exponent()) {
		return Money{}, errTooLarge()
	}
	return Money{minor: minor, currency: cur}, nil
}

// ParseMoney returns the amount that a decimal in JSON's number grammar stands
// for: "10.5", "10.50" and "1.05e1" are the same money. Fraction digits beyond
// the currency's exponent are refused unless they are trailing zeros. Its cost
// is bounded by [MaxAmountBytes], whatever the exponent says.
//
// The error is an [*InvalidError]: the first of [ReasonCurrency], [ReasonAmount],
// [ReasonAmountNotPositive], [ReasonAmountTooLarge] and [ReasonAmountPrecision].
func ParseMoney(decimal, code string) (Money, error) {
	cur, fault := parseCurrency(code)
	if fault != nil {
		return Money{}, fault
	}
	amount, fault := parseMoney(decimal, cur)
	if fault != nil {
		return Money{}, fault
	}
	return amount, nil
}

func parseMoney(decimal string, cur Currency) (Money, *InvalidError) {
	lit, err := scanDecimal(decimal)
	if err != nil {
		return Money{}, err
	}
	switch {
	case lit.zero || lit.negative:
		return Money{}, errNotPositive()
	case lit.scale > maxScale:
		return Money{}, errTooLarge()
	case lit.scale < -maxScale:
		return Money{}, errPrecision(cur)
	}
	return minorUnits(decimal, cur)
}

// minorUnits converts a literal whose sign and scale are within bounds.
func minorUnits(decimal string, cur Currency) (Money, *InvalidError) {
	amount, _, err := apd.NewFromString(decimal)
	if err != nil {
		return Money{}, invalid(ReasonAmount, fieldTotalAmount, "not a decimal number")
	}
	amount.Reduce(amount) // 10.500 → 105e-1: what is left of the exponent has meaning
	if amount.NumDigits()+int64(amount.Exponent) > maxAmountDigits {
		return Money{}, errTooLarge()
	}
	if -int64(amount.Exponent) > int64(cur.Exponent()) {
		return Money{}, errPrecision(cur)
	}
	// At most 19 digits from here on. Checked nevertheless: it is money.
	high, minor := bits.Mul64(amount.Coeff.Uint64(), pow10(int(amount.Exponent)+cur.Exponent()))
	if high != 0 || !amount.Coeff.IsUint64() {
		return Money{}, errTooLarge()
	}
	return Money{minor: minor, currency: cur}, nil
}

func errNotPositive() *InvalidError {
	return invalid(ReasonAmountNotPositive, fieldTotalAmount, "must be above zero")
}

func errTooLarge() *InvalidError {
	return invalid(ReasonAmountTooLarge, fieldTotalAmount, "must be below 10^%d", maxAmountDigits)
}

func errPrecision(cur Currency) *InvalidError {
	return invalid(ReasonAmountPrecision, fieldTotalAmount,
		"more fraction digits than %s has (%d)", cur.Code(), cur.Exponent())
}

// pow10 returns 10^n for n from 0 to 19.
func pow10(n int) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// Minor returns the amount in minor units (cents for EUR).
func (m Money) Minor() uint64 { return m.minor }

// Currency returns the currency.
func (m Money) Currency() Currency { return m.currency }

// IsZero reports whether m is the zero value: no money, in no currency.
func (m Money) IsZero() bool { return m == Money{} }

// Decimal returns the amount with exactly the currency's number of fraction
// digits: "10.50" EUR, "100" JPY, "1.500" KWD.
func (m Money) Decimal() string {
	digits := strconv.FormatUint(m.minor, 10)
	exponent := m.currency.Exponent()
	if exponent == 0 {
		return digits
	}
	if short := exponent + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	point := len(digits) - exponent
	return digits[:point] + "." + digits[point:]
}

// String returns "10.50 EUR".
func (m Money) String() string {
	return strings.TrimSuffix(m.Decimal()+" "+m.currency.code, " ")
}
