package run

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/bojanz/currency"
	"github.com/google/uuid"
)

// money: the captured totals of both books are the same to the minor unit, and
// every amount that was ordered is accounted for.
func (j *judge) money() {
	f, r := j.f, &j.report
	captured, broken := f.Book.totals(func(c Charge) bool { return c.Status == "captured" })
	ledger := make(Totals, len(f.Ledger.CapturedMinor))
	for code, text := range f.Ledger.CapturedMinor {
		minor, ok := new(big.Int).SetString(text, 10)
		if !ok {
			broken++
			continue
		}
		ledger[code] = minor
	}
	r.CapturedTotal = make(map[string]Capture)
	for _, code := range codes(captured, ledger) {
		ours, theirs := captured.decimal(code), ledger.decimal(code)
		r.CapturedTotal[code] = Capture{Charge: ours, Ledger: theirs}
		j.text("captured "+code, ours, ours == theirs, "%s in the provider's ledger", theirs)
	}
	j.orders(broken)
}

// orders holds what became of the orders against what was ordered: an event ends
// with a charge of its amount, whatever the outcome, or with a dead letter.
func (j *judge) orders(broken int64) {
	f := j.f
	if int64(len(f.Book.Letters)) > f.Book.unasked() {
		j.skip("currencies", int64(len(f.Sent.Totals)), "the amounts of dead letters are not in charge")
		return
	}
	all, more := f.Book.totals(func(Charge) bool { return true })
	example := ""
	for _, code := range codes(all, f.Sent.Totals) {
		if all.decimal(code) != f.Sent.Totals.decimal(code) {
			example = fmt.Sprintf("; not so: ordered %s %s, in charge %s", f.Sent.Totals.decimal(code), code, all.decimal(code))
		}
	}
	j.line("currencies", int64(len(f.Sent.Totals)), example == "" && broken+more == 0,
		"the charges come to what was ordered, to the minor unit%s", example)
}

// totals sums the charges that are wanted. Broken counts the amounts that are no
// whole number of minor units, which are left out.
func (b *Book) totals(wanted func(Charge) bool) (sums Totals, broken int64) {
	sums = make(Totals)
	for _, id := range b.ids() {
		c := b.Charges[id]
		if !wanted(c) {
			continue
		}
		minor := new(big.Rat).Mul(c.Amount, new(big.Rat).SetInt(power(exponent(c.Currency))))
		if !minor.IsInt() {
			broken++
			continue
		}
		if sums[c.Currency] == nil {
			sums[c.Currency] = new(big.Int)
		}
		sums[c.Currency].Add(sums[c.Currency], minor.Num())
	}
	return sums, broken
}

// ids lists the charged events in an order of its own, so that messages are repeatable.
func (b *Book) ids() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(b.Charges), func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) })
}

// decimal writes a total in major units; a currency without one has nothing.
func (t Totals) decimal(code string) string {
	minor := t[code]
	if minor == nil {
		minor = new(big.Int)
	}
	digits := exponent(code)
	return new(big.Rat).SetFrac(minor, power(digits)).FloatString(digits)
}

func codes(a, b Totals) []string {
	union := maps.Clone(a)
	maps.Copy(union, b)
	return slices.Sorted(maps.Keys(union))
}

// exponent is the number of fraction digits of a currency; an unknown one has none.
func exponent(code string) int {
	digits, _ := currency.GetDigits(code)
	return int(digits)
}

func power(digits int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
}
