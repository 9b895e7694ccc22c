package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// intentColumns are the columns of intents that a later write may change.
type intentColumns struct {
	state, owner, lastError, group    *column[pgtype.Text]
	claimed, maybeSent                *column[pgtype.Bool]
	token                             *column[pgtype.UUID]
	leaseUntil, dueAt, firstAttemptAt *column[pgtype.Timestamptz]
	replayedAt                        *column[pgtype.Timestamptz]
	attempts                          *column[pgtype.Int8]
}

func volatile(intents []*domain.Intent) intentColumns {
	return intentColumns{
		state:          columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(string(in.State)) }),
		claimed:        columnOf(intents, func(in *domain.Intent) pgtype.Bool { return toBool(in.Claimed) }),
		maybeSent:      columnOf(intents, func(in *domain.Intent) pgtype.Bool { return toBool(in.MaybeSent) }),
		token:          columnOf(intents, func(in *domain.Intent) pgtype.UUID { return toUUID(in.Token) }),
		owner:          columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.Owner) }),
		leaseUntil:     columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return timeOrNull(in.LeaseUntil) }),
		dueAt:          columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return toTime(in.DueAt) }),
		firstAttemptAt: columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return timeOrNull(in.FirstAttemptAt) }),
		replayedAt:     columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return timeOrNull(in.ReplayedAt) }),
		attempts:       columnOf(intents, func(in *domain.Intent) pgtype.Int8 { return toInt(in.Attempts) }),
		lastError:      columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.LastError) }),
		group:          columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.Group) }),
	}
}

const columnsOfIntent = `event_id, order_id, request_hash, fingerprint, state, claimed, maybe_sent, token, owner, lease_until,
	due_at, created_at, first_attempt_at, replayed_at, attempts, answer, last_error, consumer_group, source_topic, source_partition,
	source_offset, traceparent, tracestate, record, record_key, record_headers, record_timestamp`

// The order is that of the locks. What stands in an array stays in order without
// it, but nobody has promised that.
const insertIntent = `
INSERT INTO charge_intent (` + columnsOfIntent + `)
SELECT event_id, order_id, request_hash, fingerprint, state, claimed, maybe_sent, token, owner, lease_until,
	due_at, created_at, first_attempt_at, replayed_at, attempts, answer::jsonb, last_error, consumer_group, source_topic, source_partition,
	source_offset, traceparent, tracestate, record, record_key, record_headers, record_timestamp
FROM unnest(?::uuid[], ?::bigint[], ?::bytea[], ?::bytea[], ?::text[], ?::boolean[], ?::boolean[], ?::uuid[], ?::text[],
	?::timestamptz[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[], ?::timestamptz[], ?::bigint[], ?::text[], ?::text[], ?::text[],
	?::text[], ?::integer[], ?::bigint[], ?::text[], ?::text[], ?::bytea[], ?::bytea[], ?::bytea[], ?::timestamptz[]
) AS u (` + columnsOfIntent + `)
ORDER BY order_id, event_id
`

// intentTable is charge_intent with the columns that a fresh intent has: no answer is known to it.
func intentTable() table {
	return table{"charge_intent", columnNames(strings.Replace(columnsOfIntent, "answer, ", "", 1))}
}

// intentAnswer is the place of the answer among the columns.
const intentAnswer = 15

// insertIntents inserts what meets no conflict and returns how many there were.
func insertIntents(db *gorm.DB, intents []*domain.Intent, onConflict string) (int, error) {
	columns, err := cellsOfIntents(intents)
	if err != nil {
		return 0, err
	}
	result := db.Exec(insertIntent+onConflict, params(columns)...)
	if result.Error != nil {
		return 0, fmt.Errorf("insert charge_intent: %w", result.Error)
	}
	return int(result.RowsAffected), nil
}

// copyIntents appends fresh intents, all or none.
func copyIntents(ctx context.Context, conn *sql.Conn, intents []*domain.Intent) error {
	columns, err := cellsOfIntents(intents)
	if err != nil {
		return err
	}
	return met("copy charge_intent", copyRows(ctx, conn, false, intentTable(), len(intents), slices.Delete(columns, intentAnswer, intentAnswer+1)))
}

func cellsOfIntents(intents []*domain.Intent) ([]columnar, error) {
	answers, err := answerColumn(intents)
	if err != nil {
		return nil, err
	}
	headers, err := headerColumn(intents, recordOf)
	if err != nil {
		return nil, err
	}
	v := volatile(intents)
	return []columnar{
		columnOf(intents, eventID),
		columnOf(intents, func(in *domain.Intent) pgtype.Int8 { return toInt8(in.OrderID) }),
		columnOf(intents, func(in *domain.Intent) blob { return in.RequestHash[:] }),
		columnOf(intents, func(in *domain.Intent) blob { return in.Fingerprint[:] }),
		v.state, v.claimed, v.maybeSent, v.token, v.owner, v.leaseUntil, v.dueAt,
		columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return toTime(in.CreatedAt) }),
		v.firstAttemptAt, v.replayedAt, v.attempts, answers, v.lastError, v.group,
		columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.Record.Topic) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Int4 { return toInt4(in.Record.Partition) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Int8 { return toInt8(in.Record.Offset) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.TraceParent) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(in.TraceState) }),
		columnOf(intents, func(in *domain.Intent) blob { return in.Record.Value }),
		columnOf(intents, func(in *domain.Intent) blob { return in.Record.Key }),
		headers,
		columnOf(intents, func(in *domain.Intent) pgtype.Timestamptz { return toTime(in.Record.Timestamp) }),
	}, nil
}

// answerColumn returns the stored forms of the intents' answers.
func answerColumn(intents []*domain.Intent) (*column[pgtype.Text], error) {
	c := &column[pgtype.Text]{make([]pgtype.Text, len(intents))}
	for i, in := range intents {
		answer, err := encodeAnswer(in.Answer)
		if err != nil {
			return nil, err
		}
		if answer != nil {
			c.cells[i] = toText(*answer)
		}
	}
	return c, nil
}

// headerColumn returns the stored forms of records' headers.
func headerColumn[T any](rows []T, record func(T) *domain.Record) (*column[blob], error) {
	c := &column[blob]{make([]blob, len(rows))}
	for i, r := range rows {
		headers, err := domain.EncodeHeaders(record(r).Headers)
		if err != nil {
			return nil, err
		}
		c.cells[i] = headers
	}
	return c, nil
}

func recordOf(in *domain.Intent) *domain.Record { return &in.Record }

// recordBytes is what an intent's record adds to a statement.
func recordBytes(in *domain.Intent) int { return sizeOf(&in.Record) }

func sizeOf(r *domain.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
