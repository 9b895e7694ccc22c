package store_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// at returns the key of a partition's counters in a minute after the epoch.
func at(partition int32, minute int) domain.StatKey {
	return domain.StatKey{
		Group: group, Topic: "orders.confirmed", Partition: partition,
		Minute: epoch.Truncate(time.Minute).Add(time.Duration(minute) * time.Minute),
	}
}

func count(t testing.TB, s *store.Store, stats domain.Stats) {
	t.Helper()
	within(t, s, func(tx domain.Tx) error { return tx.Count(t.Context(), stats) })
}

// total returns the counters of the group over all time.
func total(t testing.TB, s *store.Store) domain.Counters {
	t.Helper()
	stats, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	return stats.Total.Counters
}

// lead is the largest lead of an id in distinct counters.
const lead = 1234 * time.Millisecond

// distinct returns counters whose numbers all differ, so that no two can be mixed
// up. Leads of ids don't add up: they are the same, whatever the factor.
func distinct(times int64) (n domain.Counters) {
	next := times
	set := func(v reflect.Value) {
		v.SetInt(next)
		next *= 2
	}
	for _, f := range reflect.ValueOf(&n).Elem().Fields() {
		if f.Kind() != reflect.Array {
			set(f)
			continue
		}
		for i := range f.Len() {
			set(f.Index(i))
		}
	}
	n.IDAheadMax = lead
	return n
}

func TestCountAddsToEveryCounter(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	count(t, s, domain.Stats{at(0, 0): distinct(1)})
	require.Equal(t, distinct(1), total(t, s))
	count(t, s, domain.Stats{at(0, 0): distinct(3)})
	require.Equal(t, distinct(4), total(t, s))
	count(t, s, domain.Stats{at(0, 0): distinct(-4)})
	require.Equal(t, domain.Counters{IDAheadMax: lead}, total(t, s), "a correction takes back, but for what was largest")
}

func TestOfLeadsTheLargestIsKept(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for _, lead := range []time.Duration{2 * time.Second, 5 * time.Second, 3 * time.Second} {
		count(t, s, domain.Stats{at(0, 0): {IDAhead: 1, IDAheadMax: lead}})
	}
	count(t, s, domain.Stats{at(0, 1): {IDAhead: 1, IDAheadMax: 4 * time.Second}, at(1, 0): {IDAhead: 1, IDAheadMax: time.Hour}})
	stats, err := s.DedupStats(t.Context(), group, time.Time{})
	require.NoError(t, err)
	require.Equal(t, domain.Counters{IDAhead: 4, IDAheadMax: 5 * time.Second}, stats.Partitions[0].Counters, "over its minutes")
	require.Equal(t, domain.Counters{IDAhead: 5, IDAheadMax: time.Hour}, stats.Total.Counters, "over the partitions")
}

// What nearly every batch counts, and what only some do, are written by two statements:
// neither may harm what the other has counted.
func TestCountersWithAndWithoutDetailAddUp(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	for range 2 {
		count(t, s, domain.Stats{at(0, 0): {Received: 1, Processed: 1}})
		n := domain.Counters{Received: 1, Republished: 1, IDAhead: 1, IDAheadMax: time.Minute}
		n.Delays[domain.DelayHour] = 1
		count(t, s, domain.Stats{at(0, 0): n, at(1, 0): {Received: 8, Processed: 8}})
	}
	want := domain.Counters{Received: 20, Processed: 18, Republished: 2, IDAhead: 2, IDAheadMax: time.Minute}
	want.Delays[domain.DelayHour] = 2
	require.Equal(t, want, total(t, s))
}

func TestNothingIsWrittenForNothingCounted(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	count(t, s, nil)
	count(t, s, domain.Stats{at(0, 0): {}})
	require.Zero(t, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM dedup_stat`))
}

func TestCountKeepsAKeysPartsApart(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	other, topic := at(0, 0), at(0, 0)
	other.Group, topic.Topic = "another-group", "another.topic"
	count(t, s, domain.Stats{
		at(0, 0): {Received: 1}, at(1, 0): {Received: 2}, at(0, 1): {Received: 4}, topic: {Received: 8}, other: {Received: 16},
	})
	require.Equal(t, 5, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM dedup_stat`))
	require.Equal(t, int64(15), total(t, s).Received)
}

// Eight writers that touch the same keys, each in an order of its own: the sums
// are exact, and no two of them wait for each other in a circle.
func TestConcurrentCountsLoseNothing(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t)
	const writers, rounds, keys = 8, 25, 12
	start := make(chan struct{})
	errs := make(chan error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			<-start
			for r := range rounds {
				stats := domain.Stats{}
				for k := range keys {
					stats[at(int32((k+w)%keys), r%2)] = distinct(1)
				}
				err := s.Transact(t.Context(), func(tx domain.Tx) error { return tx.Count(t.Context(), stats) })
				if err != nil {
					errs <- fmt.Errorf("writer %d: %w", w, err)
					return
				}
			}
		})
	}
	close(start)
	all.Wait()
	close(errs)
	require.NoError(t, <-errs)
	require.Equal(t, distinct(writers*rounds*keys), total(t, s))
}
