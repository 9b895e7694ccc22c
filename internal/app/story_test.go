package app_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// moment is an entry of a timeline, as the admin API tells it.
type moment struct {
	At     time.Time
	What   string
	Kind   string
	Reason string
	By     string
	Result string
	Status string
	Source struct{ Offset int64 }
}

// String leaves the time out, and the ids that differ from run to run.
func (m moment) String() string {
	words := []string{m.What}
	switch m.What {
	case "seen", "duplicate", "parked":
		words = append(words, strconv.FormatInt(m.Source.Offset, 10))
	}
	for _, word := range []string{m.Kind, m.Reason, m.By, m.Result, m.Status} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// An event that the provider refuses is published again, then with another amount; it
// is replayed and captured, and its topic is read once more from the beginning.
func TestAnEventTellsItsWholeStoryInOrder(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{Rules: []paymenttest.Rule{{Action: "400", Orders: []int64{1}}}})
	o := newOrder(1)
	other := o
	other.amount = "99.00"
	s := w.start(nil)
	for _, each := range []order{o, o, other} { // offsets 0, 1, 2
		w.produce(w.record(0, []byte(each.json())))
		w.settled()
	}
	require.NoError(t, w.provider.SetFaults(paymenttest.Faults{}))
	var letter int64
	require.NoError(t, w.db.QueryRow(t.Context(), `SELECT id FROM dead_letter WHERE "offset" = 0`).Scan(&letter))
	require.Equal(t, http.StatusOK, s.post(fmt.Sprintf("/api/v1/dead-letters/%d/replay", letter), `{"reason":"it is taken now"}`, nil))
	w.settled()
	s.Stop()
	w.rewind()
	s = w.start(nil)
	w.settled()

	var story struct {
		Timeline   []moment
		Duplicates []struct{ Kind string }
		Log        struct {
			MayLack bool `json:"may_lack"`
		} `json:"duplicate_log"`
	}
	require.Equal(t, http.StatusOK, s.get("/api/v1/events/"+o.id.String(), &story))
	var told []string
	for i, m := range story.Timeline {
		told = append(told, m.String())
		require.True(t, i == 0 || !m.At.Before(story.Timeline[i-1].At), "in the order of time")
	}
	require.Equal(t, []string{
		"seen 0", "claimed", "intent_committed", "first_attempt", "attempts", "parked 0 provider_rejected",
		"duplicate 1 republished",
		"duplicate 2 conflicting", "parked 2 conflicting_payload",
		"replayed alice sent_round", "outcome captured", "resolved",
		"duplicate 0 redelivered", "duplicate 1 republished", "duplicate 2 redelivered",
	}, told)
	require.Len(t, story.Duplicates, 5)
	require.Equal(t, "conflicting", story.Duplicates[3].Kind, "newest first")
	require.False(t, story.Log.MayLack)

	var logged struct {
		Items []struct {
			Kind   string
			Source struct{ Offset int64 }
			First  struct{ Offset int64 }
		}
	}
	require.Equal(t, http.StatusOK, s.get("/api/v1/dedup/duplicates?kind=redelivered&eventId="+o.id.String(), &logged))
	require.Len(t, logged.Items, 2)
	require.EqualValues(t, 2, logged.Items[0].Source.Offset, "newest first")
	require.EqualValues(t, 0, logged.Items[0].First.Offset)

	n := s.stats()
	require.EqualValues(t, 1, n.Captured)
	require.EqualValues(t, 5, n.Duplicates.Total)
	var page struct {
		Duplicates struct {
			Delays struct{ Buckets []struct{ Count int64 } }
		}
	}
	require.Equal(t, http.StatusOK, s.get("/api/v1/dedup/stats?window=all", &page))
	require.EqualValues(t, 5, page.Duplicates.Delays.Buckets[0].Count, "all of them came within a minute")
}

// A record that nobody could read became an event later on: its story begins with the
// dead letter.
func TestTheStoryOfARecoveredEventBeginsWithItsDeadLetter(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	o := newOrder(1)
	o.id = uuid.New() // version 4
	w.produce(w.record(0, []byte(o.json())))
	s := w.start(map[string]string{"REQUIRE_UUID_V7": "true"})
	w.settled()
	require.Equal(t, http.StatusNotFound, s.get("/api/v1/events/"+o.id.String(), nil), "it is no event yet")
	s.Stop()
	s = w.start(nil)
	require.Equal(t, http.StatusOK, s.post("/api/v1/dead-letters/1/replay", `{"reason":"every version is taken now"}`, nil))
	w.settled()

	var story struct{ Timeline []moment }
	require.Equal(t, http.StatusOK, s.get("/api/v1/events/"+o.id.String(), &story))
	var told []string
	for _, m := range story.Timeline {
		told = append(told, m.String())
	}
	require.Equal(t, []string{
		"parked 0 invalid_event_id_not_v7", "seen 0", "claimed", "intent_committed", "replayed alice recovered",
		"first_attempt", "attempts", "outcome captured", "resolved",
	}, told)
}
