package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// What the instance that does retention has found and done is on the page of every one.
func TestThePageOfStatisticsShowsTheTableAndItsRetention(t *testing.T) {
	t.Parallel()
	w := setup(t, 2, paymenttest.Faults{})
	one, two := w.start(nil), w.start(nil)
	w.orders(20, 2)
	w.settled()
	type page struct {
		ProcessedEvent struct {
			OldestEvent time.Time `json:"oldest_event"`
			Partitions  int
			TableBytes  int64  `json:"table_bytes"`
			IndexBytes  int64  `json:"index_bytes"`
			Mode        string `json:"mode"`
			Width       string `json:"range_width"`
			Ranges      []struct {
				From, To time.Time
				State    string
			}
			NextDrop *struct {
				From, To, At time.Time
				BlockedBy    *string `json:"blocked_by"`
			} `json:"next_drop"`
			LastTurn *struct {
				At       time.Time
				Instance string
				Error    *string
			} `json:"last_turn"`
		} `json:"processed_event"`
	}
	for _, s := range []*service{one, two} {
		var p page
		w.eventually("a turn of retention is over", func() bool {
			return s.get("/api/v1/dedup/stats", &p) == http.StatusOK && p.ProcessedEvent.LastTurn != nil
		})
		table := p.ProcessedEvent
		require.Nil(t, table.LastTurn.Error)
		require.NotEmpty(t, table.LastTurn.Instance)
		require.Equal(t, "partition", table.Mode)
		require.Equal(t, "day", table.Width)
		require.Len(t, table.Ranges, table.Partitions-1, "and the default partition")
		current := 0
		for _, r := range table.Ranges {
			require.Equal(t, 24*time.Hour, r.To.Sub(r.From))
			if r.State == "current" {
				current++
				require.False(t, table.OldestEvent.Before(r.From.Add(-24*time.Hour)), "the events are of today, or of a minute before")
			}
		}
		require.Equal(t, 1, current)
		require.NotNil(t, table.NextDrop)
		require.Equal(t, table.Ranges[0].From, table.NextDrop.From)
		require.Equal(t, table.NextDrop.To.Add(168*time.Hour), table.NextDrop.At)
		require.Nil(t, table.NextDrop.BlockedBy)
		require.Positive(t, table.TableBytes)
		require.Positive(t, table.IndexBytes)
	}
}
