package domain_test

import (
	"math/big"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/bojanz/currency"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/billing/internal/domain"
)

func TestParseMoneyKeepsTheExactAmount(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		literal, code string
		minor         uint64
		decimal       string
	}{
		{"10.50", "EUR", 1050, "10.50"},
		{"10.5", "EUR", 1050, "10.50"},
		{"10", "EUR", 1000, "10.00"},
		{"0.01", "EUR", 1, "0.01"},
		{"0.1", "EUR", 10, "0.10"},
		{"10.500000000000000000000000000000", "EUR", 1050, "10.50"},
		{"1.05e1", "EUR", 1050, "10.50"},
		{"1.05E+1", "EUR", 1050, "10.50"},
		{"1050e-2", "EUR", 1050, "10.50"},
		{"10500e-3", "EUR", 1050, "10.50"},
		{"0.0001e4", "EUR", 100, "1.00"},
		{"1e0000000000000000000000000001", "EUR", 1000, "10.00"},
		{"100", "JPY", 100, "100"},
		{"100.000", "JPY", 100, "100"},
		{"1e2", "JPY", 100, "100"},
		{"1", "JPY", 1, "1"},
		{"1.5", "KWD", 1500, "1.500"},
		{"0.001", "KWD", 1, "0.001"},
		{"0.0001", "CLF", 1, "0.0001"},
		{"999999999999999.99", "EUR", 99_999_999_999_999_999, "999999999999999.99"},
		{"999999999999999.9999", "CLF", 9_999_999_999_999_999_999, "999999999999999.9999"},
		{"1" + strings.Repeat("0", 200) + "e-199", "EUR", 1000, "10.00"},
		{"1." + strings.Repeat("0", domain.MaxAmountBytes-2), "EUR", 100, "1.00"},
		{"0." + strings.Repeat("0", 200) + "1e201", "EUR", 100, "1.00"},
	} {
		t.Run(tc.literal+" "+tc.code, func(t *testing.T) {
			t.Parallel()
			amount, err := domain.ParseMoney(tc.literal, tc.code)
			require.NoError(t, err)
			require.Equal(t, tc.minor, amount.Minor())
			require.Equal(t, tc.code, amount.Currency().Code())
			require.Equal(t, tc.decimal, amount.Decimal())
			require.Equal(t, tc.decimal+" "+tc.code, amount.String())
			require.Equal(t, money(t, tc.minor, tc.code), amount)
			require.False(t, amount.IsZero())
		})
	}
}

func TestParseMoneyRefusesByItsOwnReason(t *testing.T) {
	t.Parallel()
	for reason, literals := range map[domain.Reason][]string{
		domain.ReasonAmount: {
			"", " ", "-", "+1", "1.", ".5", "01", "-01", "00", "1e", "1e+", "0e", "-0e-", "1e1.5", "1,5", "1_000", " 1", "1 ", "1\n", "1\x00",
			"0x10", "0b1", "NaN", "Infinity", "inf", "null", "1e1e1", "1..5", "--1", "1-", "٣", "１", "1.5EUR", "1f",
			strings.Repeat("9", domain.MaxAmountBytes+1), "1." + strings.Repeat("0", domain.MaxAmountBytes),
		},
		domain.ReasonAmountNotPositive: {
			"0", "-0", "0.00", "0e5", "-1", "-0.01", "-10.50", "-1e400", "-0.001", "0e999999999", "-1e999999999",
			"0e-999999999", "0.0e99999999999999999999999999", "-" + strings.Repeat("9", 200),
		},
		domain.ReasonAmountTooLarge: {
			"1e15", "1000000000000000", "1000000000000000.00", "1e400", "1e999999999", "1E+2147483648", "1.5e9999999999999999999",
			"1e18446744073709551616", "1e18446744073709551617", strings.Repeat("9", 16), strings.Repeat("9", domain.MaxAmountBytes),
			"0." + strings.Repeat("0", 200) + "1e513", "1e513", "1e512",
		},
		domain.ReasonAmountPrecision: {
			"10.505", "0.001", "0.1e-2", "1e-3", "10.5000001", "1e-400", "1e-999999999", "1e-2147483649",
			"1e-99999999999999999999", "999999999999999.999", "1.0000000000000000000000000000000000000001", "1e-512", "1e-513",
		},
	} {
		for _, literal := range literals {
			_, err := domain.ParseMoney(literal, "EUR")
			requireReason(t, reason, err, "%q", literal)
		}
	}
	for literal, code := range map[string]string{"10.5": "JPY", "0.5": "KRW", "1.2345": "KWD", "1.00001": "CLF"} {
		_, err := domain.ParseMoney(literal, code)
		requireReason(t, domain.ReasonAmountPrecision, err, "%s %s", literal, code)
	}
}

func TestParseCurrencyTakesUpperCaseCodesOfISO4217Only(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"", "eur", "Eur", "EU", "EURO", "EUR ", " EUR", "ÈUR", "978", "ABC", "ZZZ", "$", "€", "EUR\x00", "BTC",
		"XXX", "XTS", "XAU", "XAG", "XDR", "DEM", "FRF", "HRK", "BGN", strings.Repeat("EUR", 1_000),
	} {
		_, err := domain.ParseCurrency(code)
		requireReason(t, domain.ReasonCurrency, err, "%q", code)
		_, err = domain.ParseMoney("not looked at", code)
		requireReason(t, domain.ReasonCurrency, err, "%q", code)
		_, err = domain.NewMoney(0, code)
		requireReason(t, domain.ReasonCurrency, err, "%q", code)
	}
}

// The exponent decides what an amount means, what is sent to the provider and
// what is digested. A newer currency table that moves one, or drops a currency
// that is still charged, must be noticed here and not by a customer.
func TestExponentsAreThoseOfISO4217(t *testing.T) {
	t.Parallel()
	byExponent := map[int]string{
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF " +
			"CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL " +
			"HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU " +
			"MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR " +
			"SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED " +
			"VES WST XAD XCD XCG YER ZAR ZMW ZWG",
		3: "BHD IQD JOD KWD LYD OMR TND",
		4: "CLF UYW",
	}
	var known []string
	for exponent, codes := range byExponent {
		for code := range strings.FieldsSeq(codes) {
			cur, err := domain.ParseCurrency(code)
			require.NoError(t, err, code)
			require.Equal(t, exponent, cur.Exponent(), code)
			require.Equal(t, code, cur.Code())
			known = append(known, code)
		}
	}
	require.ElementsMatch(t, known, currency.GetCurrencyCodes())
}

func TestNewMoneyHasTheBoundsOfParseMoney(t *testing.T) {
	t.Parallel()
	for code, most := range map[string]uint64{
		"JPY": 999_999_999_999_999, "EUR": 99_999_999_999_999_999,
		"KWD": 999_999_999_999_999_999, "CLF": 9_999_999_999_999_999_999,
	} {
		parsed, err := domain.ParseMoney(money(t, most, code).Decimal(), code)
		require.NoError(t, err, code)
		require.Equal(t, most, parsed.Minor())
		for _, beyond := range []uint64{most + 1, ^uint64(0)} {
			_, err = domain.NewMoney(beyond, code)
			requireReason(t, domain.ReasonAmountTooLarge, err, "%d %s", beyond, code)
		}
		_, err = domain.NewMoney(0, code)
		requireReason(t, domain.ReasonAmountNotPositive, err, "0 %s", code)
	}
}

func TestZeroMoneyIsNoMoney(t *testing.T) {
	t.Parallel()
	var none domain.Money
	require.True(t, none.IsZero())
	require.Equal(t, "0", none.Decimal())
	require.Equal(t, "0", none.String())
}

// The arithmetic is checked against big.Rat, which knows nothing of coefficients
// and exponents.
func TestParseMoneyAgreesWithExactFractions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		literal := decimalLiteral().Draw(t, "literal")
		code := rapid.SampledFrom([]string{"JPY", "EUR", "KWD", "CLF"}).Draw(t, "code")
		exact, ok := new(big.Rat).SetString(literal)
		require.True(t, ok, literal)
		cur, err := domain.ParseCurrency(code)
		require.NoError(t, err)
		minor := new(big.Rat).Mul(exact, new(big.Rat).SetInt(power(cur.Exponent())))

		amount, err := domain.ParseMoney(literal, code)
		switch {
		case len(literal) > domain.MaxAmountBytes:
			requireReason(t, domain.ReasonAmount, err, literal)
		case exact.Sign() <= 0:
			requireReason(t, domain.ReasonAmountNotPositive, err, literal)
		case exact.Cmp(new(big.Rat).SetInt(power(15))) >= 0:
			requireReason(t, domain.ReasonAmountTooLarge, err, literal)
		case !minor.IsInt():
			requireReason(t, domain.ReasonAmountPrecision, err, literal)
		default:
			require.NoError(t, err, literal)
			require.Equal(t, minor.Num().String(), strconv.FormatUint(amount.Minor(), 10), literal)
			shown, ok := new(big.Rat).SetString(amount.Decimal())
			require.True(t, ok)
			require.Zero(t, exact.Cmp(shown), literal)
		}
	})
}

func TestDecimalIsReadBackAsTheSameMoney(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom(currency.GetCurrencyCodes()).Draw(t, "code")
		cur, err := domain.ParseCurrency(code)
		require.NoError(t, err)
		most := new(big.Int).Sub(power(15+cur.Exponent()), big.NewInt(1)).Uint64()
		amount, err := domain.NewMoney(rapid.Uint64Range(1, most).Draw(t, "minor"), code)
		require.NoError(t, err)
		again, err := domain.ParseMoney(amount.Decimal(), code)
		require.NoError(t, err)
		require.Equal(t, amount, again)
		_, fraction, _ := strings.Cut(amount.Decimal(), ".")
		require.Len(t, fraction, cur.Exponent())
	})
}

// Memory is counted over the whole process, so this test does not run in parallel.
func TestParseMoneyDoesNotExpandExponents(t *testing.T) { //nolint:paralleltest // see above
	for _, literal := range []string{"1e999999999", "1e-999999999", "-1e999999999", "0e999999999", "1e512", "1e-512"} {
		const runs = 100
		allocated := allocatedBytes(func() {
			for range runs {
				_, _ = domain.ParseMoney(literal, "EUR")
			}
		})
		require.Less(t, allocated/runs, uint64(4096), literal)
	}
}

// allocatedBytes returns how much memory the process allocated while f ran.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func BenchmarkParseMoney(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := domain.ParseMoney("10.50", "EUR"); err != nil {
			b.Fatal(err)
		}
	}
}

// decimalLiteral generates JSON numbers around the bounds of an amount, and as many of those that orders are made of.
func decimalLiteral() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[1-9][0-9]{0,12}\.[0-9]{2}`), rapid.Custom(func(t *rapid.T) string {
		literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})(\.[0-9]{0,6}0{0,8}[0-9])?`).Draw(t, "digits")
		if rapid.Bool().Draw(t, "scaled") {
			literal += "e" + strconv.Itoa(rapid.IntRange(-30, 30).Draw(t, "scale"))
		}
		return literal
	}))
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// requireReason checks that err is an InvalidError of the reason.
func requireReason(t require.TestingT, reason domain.Reason, err error, hint string, args ...any) {
	var fault *domain.InvalidError
	require.ErrorAs(t, err, &fault, append([]any{hint}, args...)...)
	require.Equal(t, reason, fault.Reason, append([]any{hint}, args...)...)
}
