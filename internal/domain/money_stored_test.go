package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestStoredMoneyIsTheInverseOfDecimal(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"EUR", "JPY", "KWD", "CLF"} {
		for _, minor := range []uint64{1, 9, 10, 99, 100, 1001, 123456789, 999999999999999} {
			want, err := domain.NewMoney(minor, code)
			require.NoError(t, err)
			got, err := domain.StoredMoney(want.Decimal(), code)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	largest, err := domain.ParseMoney("999999999999999.9999", "CLF")
	require.NoError(t, err)
	got, err := domain.StoredMoney("999999999999999.9999", "CLF")
	require.NoError(t, err)
	require.Equal(t, largest, got)
}

func TestStoredMoneyAsksNoTableOfCurrencies(t *testing.T) {
	t.Parallel()
	_, err := domain.ParseMoney("19.95", "DEM")
	require.Error(t, err)
	got, err := domain.StoredMoney("19.95", "DEM")
	require.NoError(t, err)
	require.Equal(t, "19.95 DEM", got.String())
	require.Equal(t, uint64(1995), got.Minor())
	require.Equal(t, 2, got.Currency().Exponent())
}

func TestStoredMoneyRefusesWhatDecimalNeverWrites(t *testing.T) {
	t.Parallel()
	for _, decimal := range []string{
		"", ".", "x", "-1.00", "+1.00", "1e3", "NaN", "Infinity", "1,00", "1.0.0", "1_000", " 1.00", "99999999999999999999",
	} {
		_, err := domain.StoredMoney(decimal, "EUR")
		require.ErrorContains(t, err, "stored amount of EUR", decimal)
	}
}
