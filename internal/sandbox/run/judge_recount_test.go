package run

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// conflictingFacts are those of cleanFacts with two records more, which give the
// third and the fourth event another amount; the first of them came twice.
func conflictingFacts() *Facts {
	f := cleanFacts()
	f.Kills, f.Setup.Kills = []Kill{{}}, 1
	f.Sent.Records, f.Sent.Conflicting, f.Topic.Records, f.Audit.Records = 7, 2, 7, 7
	f.Topic.Events[event(3)], f.Topic.Events[event(4)] = 3, 2
	f.Topic.Conflicting = map[string]uuid.UUID{"t/0@0": event(3), "t/0@1": event(4)}
	f.Book.Letters = []Letter{
		{EventID: event(3), Reason: conflictingPayload, State: "open"}, {EventID: event(4), Reason: conflictingPayload, State: "open"},
	}
	c := &f.Book.Counters
	c.Received, c.Conflicting, c.Redelivered = 8, 2, 1
	f.Book.Delays = map[string]int64{"1m": 3, "10m": 1}
	f.Book.Log = append(f.Book.Log,
		Logged{EventID: event(3), Kind: "conflicting", Source: "t/0@0", First: "o/0@2"},
		Logged{EventID: event(3), Kind: "redelivered", Source: "t/0@0", First: "o/0@2"},
		Logged{EventID: event(4), Kind: "conflicting", Source: "t/0@1", First: "o/0@3"})
	f.Stats[0].Counters, f.Stats[0].Delays = *c, f.Book.Delays
	tell(f)
	return f
}

func TestConflictingRecordsAreParkedAndNothingElse(t *testing.T) {
	t.Parallel()
	r := Judge(conflictingFacts())
	require.Empty(t, failures(r))
	require.Equal(t, int64(2), r.Duplicates.SentConflicting)
	require.Equal(t, map[string]int64{"1m": 3, "10m": 1}, r.Duplicates.Delays)
}

func TestDuplicatesAreRecountedToTheUnit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*Facts)
		fails []string
	}{
		"a conflict less": {func(f *Facts) {
			f.Book.Counters.Conflicting, f.Book.Counters.Redelivered = 1, 2
		}, []string{"duplicates seen", "duplicates logged", "conflicting"}},
		"a conflict that was not parked": {func(f *Facts) { f.Book.Letters = f.Book.Letters[:1] }, []string{"conflicting"}},
		"a conflict of another event":    {func(f *Facts) { f.Book.Letters[0].EventID = event(1) }, []string{"conflicting"}},
		"a letter of an honest record": {func(f *Facts) {
			delete(f.Topic.Conflicting, "t/0@1")
			f.Topic.Conflicting["t/0@7"] = event(4)
		}, []string{"duplicates logged", "conflicting"}},
		"an event whose only end is a conflict": {func(f *Facts) { delete(f.Book.Charges, event(4)) }, []string{
			"charged", "lost", "counted as ended", "captured JPY", "currencies",
		}},
		"the other amount was charged": {func(f *Facts) { f.Topic.Meanings[event(4)] = meaning(4, "99", "JPY") }, []string{"recounted"}},
		"an event less processed":      {func(f *Facts) { f.Book.Counters.Processed = 3 }, []string{"received", "processed", "recounted"}},
		"a delay less":                 {func(f *Facts) { f.Book.Delays["1m"] = 2 }, []string{"delays"}},
		"a delay too many":             {func(f *Facts) { f.Book.Delays["forgotten"] = 1 }, []string{"delays"}},
		"a line too many": {func(f *Facts) {
			f.Book.Log = append(f.Book.Log, Logged{EventID: event(3), Kind: "republished", Source: "o/0@8", First: "o/0@2"})
		}, []string{"duplicates logged"}},
		"a line of no event":             {func(f *Facts) { f.Book.Log[0].EventID = event(9) }, []string{"duplicates logged"}},
		"a line of the first record":     {func(f *Facts) { f.Book.Log[0].Source = f.Book.Log[0].First }, []string{"duplicates logged"}},
		"a redelivery of another one":    {func(f *Facts) { f.Book.Log[2].Source = "o/0@9" }, []string{"duplicates logged"}},
		"a conflict told as republished": {func(f *Facts) { f.Book.Log = f.Book.Log[1:]; f.Book.Log[0].Kind = "republished" }, []string{"duplicates logged"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := conflictingFacts()
			c.spoil(f)
			f.Stats[0].Counters, f.Stats[0].Delays = f.Book.Counters, f.Book.Delays
			tell(f)
			require.Equal(t, c.fails, failures(Judge(f)))
		})
	}
}
