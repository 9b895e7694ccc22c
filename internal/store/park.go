package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

const insertLetter = `
INSERT INTO dead_letter (
	topic, partition, "offset", consumer_group, record_timestamp, key, value, headers, reason, detail, state,
	event_id, order_id, created_at, updated_at
)
SELECT topic, partition, "offset", consumer_group, record_timestamp, key, value, headers, reason, detail, state,
	event_id, order_id, at, at
FROM unnest(?::text[], ?::integer[], ?::bigint[], ?::text[], ?::timestamptz[], ?::bytea[], ?::bytea[], ?::bytea[],
	?::text[], ?::text[], ?::text[], ?::uuid[], ?::bigint[], ?::timestamptz[]
) AS u (
	topic, partition, "offset", consumer_group, record_timestamp, key, value, headers, reason, detail, state,
	event_id, order_id, at
)
ORDER BY topic, partition, "offset"
ON CONFLICT (topic, partition, "offset") DO NOTHING
RETURNING topic, partition, "offset"`

// The rows that reopen are locked in the order of their coordinates before the
// join makes an order of its own.
const reopenLetter = `
WITH u AS (
	SELECT * FROM unnest(?::text[], ?::integer[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::timestamptz[])
		AS u (topic, partition, "offset", reason, detail, state, at)
), locked AS MATERIALIZED (
	SELECT l.id, u.reason, u.detail, u.state, u.at FROM dead_letter AS l JOIN u USING (topic, partition, "offset")
	ORDER BY l.topic, l.partition, l."offset" FOR UPDATE OF l
)
UPDATE dead_letter AS l SET reason = locked.reason, detail = locked.detail, state = locked.state, updated_at = locked.at
FROM locked WHERE l.id = locked.id`

// Park implements [domain.Tx]. One statement writes the letters, and a second one
// gives those that were there already and reopen their new reason. An upsert could
// not tell the ones from the others.
func (t tx) Park(ctx context.Context, letters []domain.Letter) (map[domain.Coordinates]bool, error) {
	fresh := make(map[domain.Coordinates]bool, len(letters))
	ordered := refs(letters)
	slices.SortStableFunc(ordered, byCoordinates)
	for chunk := range chunks(ordered, letterBytes) {
		if err := t.insertLetters(ctx, chunk, fresh); err != nil {
			return nil, err
		}
	}
	var again []*domain.Letter
	for i, l := range ordered {
		first := i == 0 || byCoordinates(ordered[i-1], l) != 0
		if !l.Reopens || first && fresh[l.Record.Coordinates] {
			continue
		}
		if n := len(again); n > 0 && byCoordinates(again[n-1], l) == 0 {
			again = again[:n-1] // the last word counts
		}
		again = append(again, l)
	}
	for chunk := range slices.Chunk(again, maxRows) {
		if err := t.reopen(ctx, chunk); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// insertLetters adds the coordinates of those that were not there before.
func (t tx) insertLetters(ctx context.Context, letters []*domain.Letter, fresh map[domain.Coordinates]bool) error {
	columns, err := letterColumns(letters)
	if err != nil {
		return err
	}
	var rows []struct {
		Topic     string
		Partition int32
		Offset    int64
	}
	err = t.db.WithContext(ctx).Raw(insertLetter, columns...).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("insert dead_letter: %w", err)
	}
	for _, r := range rows {
		fresh[domain.Coordinates(r)] = true
	}
	return nil
}

// reopen gives the letters that stand at these coordinates another reason.
func (t tx) reopen(ctx context.Context, letters []*domain.Letter) error {
	at := coordinateColumns(letters)
	err := t.db.WithContext(ctx).Exec(reopenLetter, append(at,
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(string(l.Reason)) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(l.Detail) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(string(l.State)) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Timestamptz { return toTime(l.At) }),
	)...).Error
	if err != nil {
		return fmt.Errorf("reopen dead_letter: %w", err)
	}
	return nil
}

func coordinateColumns(letters []*domain.Letter) []any {
	return []any{
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(l.Record.Topic) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Int4 { return toInt4(l.Record.Partition) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Int8 { return toInt8(l.Record.Offset) }),
	}
}

func letterColumns(letters []*domain.Letter) ([]any, error) {
	headers, err := headerColumn(letters, func(l *domain.Letter) *domain.Record { return &l.Record })
	if err != nil {
		return nil, err
	}
	return append(coordinateColumns(letters),
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(l.Group) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Timestamptz { return toTime(l.Record.Timestamp) }),
		columnOf(letters, func(l *domain.Letter) blob { return l.Record.Key }),
		columnOf(letters, func(l *domain.Letter) blob { return l.Record.Value }),
		headers,
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(string(l.Reason)) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(l.Detail) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Text { return toText(string(l.State)) }),
		columnOf(letters, func(l *domain.Letter) pgtype.UUID { return uuidOrNull(l.EventID) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Int8 { return int8OrNull(l.OrderID) }),
		columnOf(letters, func(l *domain.Letter) pgtype.Timestamptz { return toTime(l.At) }),
	), nil
}

// letterBytes is what a letter's record adds to a statement.
func letterBytes(l *domain.Letter) int { return sizeOf(&l.Record) }

func byCoordinates(a, b *domain.Letter) int {
	x, y := &a.Record.Coordinates, &b.Record.Coordinates
	return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset))
}
