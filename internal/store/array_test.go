package store_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

func TestAClaimsListIsFilledUpToOneOfAFewLengths(t *testing.T) {
	t.Parallel()
	lengths := map[int]bool{}
	for n := 1; n <= store.MaxRows; n++ {
		filled := store.Steps(n)
		require.GreaterOrEqual(t, filled, n)
		require.LessOrEqual(t, filled, n+(n+1)/2, "no more than half as many again")
		lengths[filled] = true
	}
	require.Len(t, lengths, 18)
	for _, n := range []int{1, 2, 3, 4, 6, 256, 384, store.MaxRows} {
		require.Equal(t, n, store.Steps(n))
	}
	require.Equal(t, 6, store.Steps(5))
	require.Equal(t, 384, store.Steps(257))
	require.Equal(t, store.MaxRows, store.Steps(385))
}

func TestAStatementTakesSoManyRowsAndBytes(t *testing.T) {
	t.Parallel()
	repeat := func(n, size int) []int {
		sizes := make([]int, n)
		for i := range sizes {
			sizes[i] = size
		}
		return sizes
	}
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		sizes []int
		want  []int
	}{
		"none at all":                   {nil, nil},
		"as many as there may be":       {repeat(store.MaxRows, 1), []int{store.MaxRows}},
		"one more":                      {repeat(store.MaxRows+1, 1), []int{store.MaxRows, 1}},
		"as many bytes as there may be": {repeat(9, mib), []int{8, 1}},
		"one that is larger by itself":  {[]int{1, 9 * mib, 1, 1}, []int{1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			for chunk := range store.Chunks(tc.sizes, func(size int) int { return size }) {
				got = append(got, len(chunk))
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// A connection keeps what it has prepared. A batch of nearly the same size as the
// one before it must find all of it.
func TestAWarmBatchPreparesNothing(t *testing.T) {
	t.Parallel()
	c := storetest.Config(storetest.URL(t))
	c.MaxTransactions = 1
	s, err := store.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	biller := newBiller(s, true)
	bill := func(from, to int64, more ...domain.Record) {
		for offset := from; offset < to; offset++ {
			more = append(more, orderRecord(offset))
		}
		require.NoError(t, biller.Bill(t.Context(), domain.Pass{}, more))
	}
	again, broken := orderRecord(1), orderRecord(2)
	broken.Value = []byte("{")
	bill(10, 266, again)
	bill(300, 556, again, broken) // cold still: a duplicate is looked up, a letter parked

	for name, pool := range s.Pools() {
		require.LessOrEqual(t, prepared(t, pool), 15, name)
	}
	main, side := prepared(t, s.Pools()["main"]), prepared(t, s.Pools()["side"])
	require.Greater(t, main, 5)
	for n := range int64(4) {
		broken.Offset++
		bill(1000*(n+1), 1000*(n+1)+260+n, again, broken)
	}
	require.Equal(t, main, prepared(t, s.Pools()["main"]))
	require.Equal(t, side, prepared(t, s.Pools()["side"]))
}

// prepared counts the prepared statements of a pool that has used one connection.
func prepared(t *testing.T, pool *sql.DB) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, pool.QueryRowContext(ctx, `SELECT count(*) FROM pg_prepared_statements`).Scan(&n))
	require.Equal(t, 1, pool.Stats().OpenConnections)
	return n
}
