package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store/storetest"
)

// duplicates returns two lines of the log: one that says all there is, and one that
// knows as little as can be.
func duplicates() []domain.Duplicate {
	at := func(partition int32, offset int64) domain.Coordinates {
		return domain.Coordinates{Topic: "orders.confirmed", Partition: partition, Offset: offset}
	}
	ids := sightings(2)
	return []domain.Duplicate{
		{
			Group: group, EventID: ids[0].EventID, Kind: domain.DuplicateRepublished, Record: at(3, 9), SeenAt: epoch,
			First: at(0, 0), FirstSeenAt: epoch.Add(-time.Hour),
		},
		{Group: "another-group", EventID: ids[1].EventID, Kind: domain.DuplicateConflicting, Record: at(1, 1<<40), SeenAt: epoch},
	}
}

func TestDuplicatesAreLoggedInTheirOrderAndWhole(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	all := duplicates()
	within(t, s, func(tx domain.Tx) error { return tx.Log(t.Context(), all) })
	within(t, s, func(tx domain.Tx) error { return tx.Log(t.Context(), nil) })
	rows, err := storetest.Conn(t, databaseURL).Query(t.Context(), `SELECT consumer_group, event_id, kind, topic, partition, "offset", seen_at,
		coalesce(first_topic, ''), coalesce(first_partition, 0), coalesce(first_offset, 0), first_seen_at, num_nulls(first_topic, first_partition, first_offset)
		FROM duplicate_log ORDER BY id`)
	require.NoError(t, err)
	type line struct {
		domain.Duplicate
		unknown int
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l line, err error) {
		var first *time.Time
		err = row.Scan(&l.Group, &l.EventID, &l.Kind, &l.Record.Topic, &l.Record.Partition, &l.Record.Offset, &l.SeenAt,
			&l.First.Topic, &l.First.Partition, &l.First.Offset, &first, &l.unknown)
		if l.SeenAt = l.SeenAt.UTC(); first != nil {
			l.FirstSeenAt = first.UTC()
		}
		return l, err
	})
	require.NoError(t, err)
	require.Equal(t, []line{{all[0], 0}, {all[1], 3}}, lines)
}

func TestALogThatIsRolledBackHoldsNothing(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	require.ErrorIs(t, s.Transact(t.Context(), func(tx domain.Tx) error {
		require.NoError(t, tx.Log(t.Context(), duplicates()))
		return domain.ErrMoved
	}), domain.ErrMoved)
	require.Zero(t, value[int](t, storetest.Conn(t, databaseURL), `SELECT count(*) FROM duplicate_log`))
}
