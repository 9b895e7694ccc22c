package domain

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// idOf returns a version 7 id of an instant.
func idOf(at time.Time) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id
}

func TestTheAgeOfAnEventIsThatOfTheOlderWitness(t *testing.T) {
	t.Parallel()
	ago := func(h int) time.Time { return noon.Add(-time.Duration(h) * time.Hour) }
	none, v4 := time.Time{}, uuid.New()
	for name, tc := range map[string]struct {
		id        uuid.UUID
		timestamp time.Time
		outside   bool
	}{
		"both young":                            {idOf(ago(1)), ago(1), false},
		"on the edge":                           {idOf(ago(168)), ago(168), false},
		"an old record":                         {idOf(ago(1)), ago(169), true},
		"an old event, published again":         {idOf(ago(169)), ago(1), true},
		"a producer's clock that is ahead":      {idOf(noon.Add(time.Hour)), ago(169), true},
		"a record without a time, young":        {idOf(ago(1)), none, false},
		"a record without a time, old":          {idOf(ago(169)), none, true},
		"an id without a time, young":           {v4, ago(1), false},
		"an id without a time, old":             {v4, ago(169), true},
		"neither has a time: the event's own":   {v4, none, true},
		"one millisecond outside, by its id":    {idOf(ago(168).Add(-time.Millisecond)), noon, true},
		"a timestamp of the future, an old id":  {idOf(ago(169)), noon.Add(time.Hour), true},
		"a timestamp of the future, a young id": {idOf(ago(1)), noon.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := &item{
				record: &Record{Timestamp: tc.timestamp},
				event:  Event{ID: tc.id, OccurredAt: ago(169)},
			}
			b := &batch{leaders: []*item{it}}
			b.guard(&Policy{DedupRetention: 168 * time.Hour}, noon)
			require.Equal(t, tc.outside, it.outside)
			it.outside = false
			b.guard(&Policy{}, noon)
			require.False(t, it.outside, "no retention, no window")
		})
	}
}
