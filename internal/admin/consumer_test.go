package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
)

func TestTheConsumerIsShown(t *testing.T) {
	t.Parallel()
	since := noon.Add(-time.Minute)
	b := setup(t, func(b *bundle) {
		b.deps.Consumer = func() admin.ConsumerStatus {
			return admin.ConsumerStatus{
				Topic: "orders", Group: testGroup, OffsetStore: "postgres", Running: true, LastPoll: noon,
				BrokerError: "1 of 1 brokers are down", BrokerErrorSince: since, LeavingLanes: 1,
				Pauses: []admin.Pause{{By: "provider", Reason: "HTTP 401", Since: since}},
				Partitions: []admin.PartitionStatus{
					{
						Partition: 0, State: "running", Queued: 12, Batches: 2, InFlight: 4, Done: 100, Committed: 90, HighWatermark: 120, Lag: 20,
						Paused: "queue full", Failures: 2, LastError: "commit: timeout",
					},
					{Partition: 3, State: "waiting", Queued: 1, Done: 7, Committed: 7, HighWatermark: 9, Lag: 2},
				},
			}
		}
	})
	require.Equal(t, map[string]any{
		"topic": "orders", "group": testGroup, "offset_store": "postgres", "running": true, "last_poll": "2026-03-01T12:00:30Z",
		"broker_error": "1 of 1 brokers are down", "broker_error_since": "2026-03-01T11:59:30Z",
		"fatal": nil, "leaving_lanes": 1., "paused": true,
		"pauses": []any{map[string]any{"by": "provider", "reason": "HTTP 401", "since": "2026-03-01T11:59:30Z"}},
		"queued": 13., "in_flight": 4., "lag": 22.,
		"assignment": []any{
			map[string]any{
				"partition": 0., "state": "running", "queued": 12., "batches": 2., "in_flight": 4., "next_offset": 100., "committed_offset": 90.,
				"high_watermark": 120., "lag": 20., "paused": "queue full", "failures": 2., "last_error": "commit: timeout",
			},
			map[string]any{
				"partition": 3., "state": "waiting", "queued": 1., "batches": 0., "in_flight": 0., "next_offset": 7., "committed_offset": 7.,
				"high_watermark": 9., "lag": 2., "paused": nil, "failures": 0., "last_error": nil,
			},
		},
	}, b.show(t, "/api/v1/consumer"))
}

func TestWhatTheConsumerDoesNotKnowIsNull(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.deps.Consumer = func() admin.ConsumerStatus {
			return admin.ConsumerStatus{Fatal: "fenced", Partitions: []admin.PartitionStatus{
				{Done: 5, Committed: -1, HighWatermark: 8, Lag: 3}, {Partition: 1, Done: -1, Committed: -1, HighWatermark: -1, Lag: -1},
			}}
		}
	})
	got := b.show(t, "/api/v1/consumer")
	require.Equal(t, "fenced", got["fatal"])
	require.Nil(t, got["last_poll"])
	require.Nil(t, got["lag"], "a sum over what is unknown is unknown")
	require.Equal(t, false, got["paused"])
	require.Equal(t, []any{}, got["pauses"])
	unknown := as[map[string]any](t, as[[]any](t, got["assignment"])[1])
	for _, member := range []string{"next_offset", "committed_offset", "high_watermark", "lag"} {
		require.Nil(t, unknown[member], member)
	}
}

func TestAConsumerWithoutPartitionsHasNoLag(t *testing.T) {
	t.Parallel()
	got := setup(t).show(t, "/api/v1/consumer")
	require.InDelta(t, 0, got["lag"], 0)
	require.Equal(t, []any{}, got["assignment"])
}
