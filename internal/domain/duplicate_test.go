package domain

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestABucketEndsWithItsBoundAndBeginsBehindTheOneBefore(t *testing.T) {
	t.Parallel()
	require.Equal(t, DelayForgotten, delayOf(time.Time{}, noon))
	require.Equal(t, DelayMinute, delayOf(noon, noon))
	require.Equal(t, DelayMinute, delayOf(noon.Add(time.Hour), noon), "the database's clock is ahead of ours")
	before := time.Duration(0)
	for _, b := range DelayBuckets() {
		bound, bounded := b.Bound()
		require.Equal(t, b < DelayLonger, bounded)
		if !bounded {
			continue
		}
		require.Greater(t, bound, before)
		require.Equal(t, b, delayOf(noon.Add(-before-time.Nanosecond), noon), "just behind the bucket before %s", b)
		require.Equal(t, b, delayOf(noon.Add(-bound), noon), "at the bound of %s", b)
		require.Equal(t, b+1, delayOf(noon.Add(-bound-time.Nanosecond), noon), "behind %s", b)
		before = bound
	}
	require.Equal(t, 30*24*time.Hour, before)
}

// again returns a record that repeats what was first seen at an offset.
func again(f fate, offset int64, first Sighting) *item {
	return &item{
		record: &Record{Coordinates: Coordinates{Topic: "t", Partition: 3, Offset: offset}},
		event:  Event{ID: first.EventID, OrderID: 42}, fate: f, first: first,
	}
}

func TestADuplicateIsLoggedWithWhatItRepeats(t *testing.T) {
	t.Parallel()
	first := Sighting{EventID: uuid.New(), Source: Coordinates{Topic: "u", Partition: 1, Offset: 5}, SeenAt: noon.Add(-2 * time.Hour)}
	for f, kind := range map[fate]DuplicateKind{
		fateRedelivered: DuplicateRedelivered, fateRepublished: DuplicateRepublished, fateConflicting: DuplicateConflicting,
	} {
		r := newRuling(&bounds, noon)
		it := again(f, 9, first)
		require.NoError(t, r.rule(it, nil))
		require.Equal(t, []Duplicate{{
			Group: "g", EventID: first.EventID, Kind: kind, Record: it.record.Coordinates, SeenAt: noon,
			First: first.Source, FirstSeenAt: first.SeenAt,
		}}, r.duplicates)
		require.Equal(t, int64(1), r.stats[statKey("g", it.record.Coordinates, noon)].Delays[DelaySixHours])

		twin := again(f, 9, first)
		twin.first.SeenAt, twin.twin = time.Time{}, true
		r = newRuling(&bounds, noon)
		require.NoError(t, r.rule(twin, nil))
		require.Equal(t, noon, r.duplicates[0].FirstSeenAt, "the first one came with it")
		require.Equal(t, int64(1), r.stats[statKey("g", it.record.Coordinates, noon)].Delays[DelayMinute])
	}
	require.Len(t, DuplicateKinds(), 3)
}

// Whether a conflicting record was parked before is known only once its letter is
// written. What was parked is the first copy, and the other one a redelivery.
func TestOnlyTheRepeatedCopyOfAConflictingRecordIsARedelivery(t *testing.T) {
	t.Parallel()
	first := Sighting{EventID: uuid.New(), Source: Coordinates{Topic: "t", Partition: 3, Offset: 5}, SeenAt: noon}
	r := newRuling(&bounds, noon)
	for _, it := range []*item{
		again(fateConflicting, 8, first), again(fateRepublished, 7, first), again(fateConflicting, 9, first), again(fateConflicting, 8, first),
	} {
		require.NoError(t, r.rule(it, nil))
	}
	stats := r.repeated(map[Coordinates]bool{{Topic: "t", Partition: 3, Offset: 8}: true, {Topic: "t", Partition: 3, Offset: 9}: true})
	require.Equal(t, Stats{statKey("g", Coordinates{Topic: "t", Partition: 3}, noon): {Conflicting: -1, Redelivered: 1}}, stats)
	kinds := make([]DuplicateKind, len(r.duplicates))
	for i, d := range r.duplicates {
		kinds[i] = d.Kind
	}
	require.Equal(t, []DuplicateKind{DuplicateConflicting, DuplicateRepublished, DuplicateConflicting, DuplicateRedelivered}, kinds)
}

func TestAnIdAheadOfOurClockIsCountedBeyondASecond(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lead    time.Duration
		version byte
		fate    fate
		counted bool
	}{
		"of the past":             {-time.Hour, 7, fateSibling, false},
		"a second":                {time.Second, 7, fateSibling, false},
		"more than a second":      {time.Second + time.Millisecond, 7, fateSibling, true},
		"a year":                  {8760 * time.Hour, 7, fateSibling, true},
		"of a duplicate":          {time.Hour, 7, fateRepublished, false},
		"of another version":      {time.Hour, 4, fateSibling, false},
		"of the end of all times": {1<<63 - 1, 7, fateSibling, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := idOf(noon.Add(tc.lead))
			if tc.lead == 1<<63-1 {
				id = uuid.MustParse("ffffffff-ffff-7fff-bfff-ffffffffffff")
			}
			id[6] = id[6]&0x0f | tc.version<<4
			record := recordOf(id, 42, 1)
			batch := newBatch(Decoder{}, slices.Clone([]Record{record}))
			batch.guard(&bounds, noon)
			it := batch.items[0]
			require.NoError(t, it.invalid)
			it.fate = tc.fate
			r := newRuling(&bounds, noon)
			require.NoError(t, r.rule(it, nil))
			n := r.stats[statKey("g", record.Coordinates, noon)]
			if !tc.counted {
				require.Zero(t, n.IDAhead)
				require.Zero(t, n.IDAheadMax)
				return
			}
			require.Equal(t, int64(1), n.IDAhead)
			require.Equal(t, tc.lead.Truncate(time.Millisecond), n.IDAheadMax)
		})
	}
}
