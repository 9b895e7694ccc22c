package domain

import (
	"fmt"
	"strconv"
	"strings"
)

// StoredMoney restores an amount that [Money.Decimal] wrote: its fraction digits
// are the currency's exponent. It asks no table of currencies, so that what was
// charged in a currency that exists no more can still be read.
func StoredMoney(decimal, code string) (Money, error) {
	whole, fraction, _ := strings.Cut(decimal, ".")
	minor, err := strconv.ParseUint(whole+fraction, 10, 64)
	if err != nil {
		return Money{}, fmt.Errorf("stored amount of %s: %w", code, err)
	}
	return Money{minor: minor, currency: Currency{code: code, exponent: uint8(len(fraction))}}, nil
}
