package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// at returns an item of that offset and size.
func at(offset int64, bytes int) item {
	return item{record: domain.Record{Coordinates: domain.Coordinates{Topic: "t", Offset: offset}}, epoch: 4, bytes: bytes}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	offsets := func(records []domain.Record) []int64 {
		var list []int64
		for _, record := range records {
			list = append(list, record.Offset)
		}
		return list
	}

	t.Run("hands out what waits, at most the limit", func(t *testing.T) {
		t.Parallel()
		q := queue{maxRecords: 10, maxBytes: 1000}
		records, _ := q.head(5)
		require.Empty(t, records)
		for offset := range int64(7) {
			q.push(at(offset*2, 1)) // offsets have gaps
		}
		records, end := q.head(5)
		require.Equal(t, []int64{0, 2, 4, 6, 8}, offsets(records))
		require.Equal(t, mark{offset: 9, epoch: 4}, end)
		q.drop(5)
		records, end = q.head(5)
		require.Equal(t, []int64{10, 12}, offsets(records))
		require.Equal(t, mark{offset: 13, epoch: 4}, end)
	})
	t.Run("never puts a repeated offset into one batch", func(t *testing.T) {
		t.Parallel()
		q := queue{maxRecords: 10, maxBytes: 1000}
		for _, offset := range []int64{5, 6, 6, 7, 3, 4} {
			q.push(at(offset, 1))
		}
		for _, want := range [][]int64{{5, 6}, {6, 7}, {3, 4}} {
			records, end := q.head(10)
			require.Equal(t, want, offsets(records))
			require.Equal(t, want[1]+1, end.offset)
			q.drop(len(records))
		}
	})
	t.Run("is full at either bound and roomy below half of both", func(t *testing.T) {
		t.Parallel()
		q := queue{maxRecords: 4, maxBytes: 100}
		for offset := range int64(4) {
			require.False(t, q.full())
			q.push(at(offset, 1))
		}
		require.True(t, q.full(), "by records")
		q.drop(1)
		require.False(t, q.full())
		require.False(t, q.roomy())
		q.drop(1)
		require.True(t, q.roomy())
		q.push(at(9, 98))
		require.True(t, q.full(), "by bytes")
		q.drop(2)
		require.False(t, q.roomy())
		q.drop(1)
		require.True(t, q.roomy())
		require.Zero(t, q.bytes)
	})
}
