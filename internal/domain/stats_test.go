package domain

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlusAddsEveryCounter(t *testing.T) {
	t.Parallel()
	var a, b, sum Counters
	as, bs, sums := numbers(&a), numbers(&b), numbers(&sum)
	for i := range as {
		as[i].SetInt(int64(1) << i)
		bs[i].SetInt(int64(-3) << i)
		sums[i].SetInt(int64(-2) << i)
	}
	sum.IDAheadMax = a.IDAheadMax // the larger one
	require.Equal(t, sum, a.Plus(b))
	require.Equal(t, sum, b.Plus(a))
	require.Equal(t, a, a.Plus(Counters{}))
}

// numbers are all the numbers in counters, each bucket by itself.
func numbers(c *Counters) (all []reflect.Value) {
	for _, f := range reflect.ValueOf(c).Elem().Fields() {
		if f.Kind() != reflect.Array {
			all = append(all, f)
			continue
		}
		for i := range f.Len() {
			all = append(all, f.Index(i))
		}
	}
	return all
}

func TestDuplicatesAreOfThreeKinds(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(7), Counters{Redelivered: 1, Republished: 2, Conflicting: 4, Processed: 8, Invalid: 16}.Duplicates())
}

func TestEveryFinalResultHasItsCounter(t *testing.T) {
	t.Parallel()
	want := map[ChargeStatus]Counters{
		ChargeCaptured: {Captured: 1}, ChargeDeclined: {Declined: 1},
		ChargeDuplicateOrder: {DuplicateOrder: 1}, ChargeDiscarded: {Discarded: 1},
	}
	require.Len(t, want, len(ChargeStatuses()))
	for _, status := range ChargeStatuses() {
		var n Counters
		n.final(status)
		require.Equal(t, want[status], n, status)
	}
}

func TestCountersBelongToTheMinuteInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 14, 5, 44, 59, 999, time.FixedZone("UTC+5:45", 20700))
	key := statKey("g", Coordinates{Topic: "t", Partition: 3, Offset: 9}, at)
	require.Equal(t, StatKey{Group: "g", Topic: "t", Partition: 3, Minute: time.Date(2026, 3, 13, 23, 59, 0, 0, time.UTC)}, key)

	stats := Stats{}
	stats.add(key, Counters{Received: 1})
	stats.add(key, Counters{Received: 1, Invalid: 1})
	require.Equal(t, Stats{key: {Received: 2, Invalid: 1}}, stats)
}
