package orders

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// maxMajorDigits bounds an amount: below 10^15 of the major unit.
const maxMajorDigits = 15

// maxExponent leaves out units of account (CLF, UYW), whose largest amounts int64 does not hold.
const maxExponent = 3

// Amount is an exact sum of money.
type Amount struct {
	// Minor is in the currency's minor unit: cents for EUR, yen for JPY.
	Minor    int64
	Currency string
}

// exponent is the number of fraction digits of a currency by ISO 4217.
func exponent(code string) (int, error) {
	digits, ok := currency.GetDigits(code)
	if !ok || digits > maxExponent {
		return 0, fmt.Errorf("currency %q: not an ISO 4217 code with at most %d fraction digits", code, maxExponent)
	}

	return int(digits), nil
}

// Decimal writes the amount with all digits of its currency: 10.50 EUR, 100 JPY, 1.250 KWD.
func (a Amount) Decimal() string {
	// Amounts are made with a known currency only.
	digits, _ := currency.GetDigits(a.Currency)

	return decimal(a.Minor, int(digits))
}

func decimal(minor int64, digits int) string {
	if digits == 0 {
		return strconv.FormatInt(minor, 10)
	}

	text := strconv.FormatInt(minor, 10)
	if missing := digits + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}

	return text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// parseAmount reads a plain decimal above zero, with at most the currency's fraction digits. No float is involved.
func parseAmount(text, code string) (Amount, error) {
	digits, err := exponent(code)
	if err != nil {
		return Amount{}, err
	}

	major, fraction, point := strings.Cut(text, ".")
	if !isDigits(major) || point && !isDigits(fraction) {
		return Amount{}, errors.New("not a plain decimal number")
	}

	if len(strings.TrimLeft(major, "0")) > maxMajorDigits {
		return Amount{}, errors.New("10^15 or more")
	}

	if len(fraction) > digits {
		return Amount{}, fmt.Errorf("more than the %d fraction digits of %s", digits, code)
	}

	minor, err := strconv.ParseInt(major+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return Amount{}, fmt.Errorf("not a plain decimal number: %w", err)
	}

	if minor == 0 {
		return Amount{}, errors.New("not above zero")
	}

	return Amount{Minor: minor, Currency: code}, nil
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// add adds to the sums per currency and refuses an overflow.
func add(sums map[string]int64, a Amount) error {
	if sums[a.Currency] > math.MaxInt64-a.Minor {
		return fmt.Errorf("the sum of all %s amounts exceeds 2^63-1 minor units", a.Currency)
	}

	sums[a.Currency] += a.Minor

	return nil
}
