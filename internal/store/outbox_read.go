package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

// Only rows of transactions below the snapshot's oldest open one: no row can come
// before them any more, however late its transaction commits. The bytes of a row are
// told by its size, without reading it.
const readOutbox = `
SELECT xid::text::bigint, id, slot, created_at, kind, key, value, headers
FROM (
	SELECT r.*, sum(size) OVER (ORDER BY xid, id) - size AS before
	FROM (
		SELECT *, coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0) + coalesce(octet_length(headers), 0) AS size
		FROM outbox
		WHERE (xid, id) > ($1::bigint::text::xid8, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
		ORDER BY xid, id LIMIT $3
	) AS r
) AS s
WHERE before < $4
ORDER BY xid, id`

// Next returns the messages behind the cursor, in order: at most a thousand, and 4 MiB
// unless the first one alone is larger. None may be due to a transaction that is open.
func (o *Outbox) Next(ctx context.Context) ([]domain.Outgoing, error) {
	if o.conn == nil {
		return nil, ErrNotLeading
	}
	batch, err := o.read(ctx)
	if err != nil {
		return nil, o.failed("read the outbox", err)
	}
	return batch, nil
}

func (o *Outbox) read(ctx context.Context) (batch []domain.Outgoing, err error) {
	rows, err := o.conn.QueryContext(ctx, readOutbox, o.at.Transaction, o.at.ID, outboxRows, outboxBytes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m domain.Outgoing
		var headers []byte
		if err := rows.Scan(&m.Position.Transaction, &m.Position.ID, &m.Slot, &m.CreatedAt, &m.Kind, &m.Key, &m.Value, &headers); err != nil {
			return nil, err
		}
		if m.Headers, err = domain.DecodeHeaders(headers); err != nil {
			return nil, err
		}
		batch = append(batch, m)
	}
	return batch, rows.Err()
}

// The cursor moves only from where this reader has read, and only while no other one
// has taken over. What is refused is kept aside in the same statement.
const moveCursor = `
WITH moved AS (
	UPDATE outbox_cursor SET xid = $1::bigint::text::xid8, id = $2, moved_at = now()
	WHERE epoch = $3 AND (xid, id) = ($4::bigint::text::xid8, $5::bigint)
	RETURNING one
), slots AS (
	UPDATE outbox_slot SET published_at = now() FROM moved
	WHERE slot = ANY($6::smallint[]) AND published_at < now() - interval '1 minute'
), marks AS (
	INSERT INTO outbox_refused (xid, id, topic, reason, kind, key, value, headers)
	SELECT o.xid, o.id, u.topic, u.reason, o.kind, o.key, o.value, o.headers
	FROM moved, unnest($7::bigint[], $8::bigint[], $9::text[], $10::text[]) AS u (xid, id, topic, reason)
	JOIN outbox AS o ON o.xid = u.xid::text::xid8 AND o.id = u.id
	ON CONFLICT DO NOTHING
)
SELECT count(*) FROM moved`

// Move puts the cursor behind the batch, which is published but for what was refused.
func (o *Outbox) Move(ctx context.Context, batch []domain.Outgoing, refused []domain.Refusal) error {
	if o.conn == nil {
		return ErrNotLeading
	}
	if len(batch) == 0 {
		return nil
	}
	to := batch[len(batch)-1].Position
	slots := []int16{batch[0].Slot}
	for i := range batch {
		if s := batch[i].Slot; s != slots[len(slots)-1] {
			slots = append(slots, s)
		}
	}
	var moved int
	err := o.conn.QueryRowContext(ctx, moveCursor, to.Transaction, to.ID, o.epoch, o.at.Transaction, o.at.ID, slots,
		columnOf(refused, func(r domain.Refusal) pgtype.Int8 { return toInt8(r.Position.Transaction) }),
		columnOf(refused, func(r domain.Refusal) pgtype.Int8 { return toInt8(r.Position.ID) }),
		columnOf(refused, func(r domain.Refusal) pgtype.Text { return toText(r.Topic) }),
		columnOf(refused, func(r domain.Refusal) pgtype.Text { return toText(r.Reason) }),
	).Scan(&moved)
	if err == nil && moved == 0 {
		err = ErrNotLeading
	}
	if err != nil {
		return o.failed("move the outbox cursor", err)
	}
	o.at = to
	return nil
}

const countBacklog = `
SELECT count(*), min(created_at), (SELECT count(*) FROM (SELECT FROM outbox_refused LIMIT $3) AS r) FROM (
	SELECT created_at FROM outbox WHERE (xid, id) > ($1::bigint::text::xid8, $2::bigint) ORDER BY xid, id LIMIT $3
) AS o`

// Backlog says what is still to be published.
func (o *Outbox) Backlog(ctx context.Context) (domain.Backlog, error) {
	var b domain.Backlog
	if o.conn == nil {
		return b, ErrNotLeading
	}
	var oldest sql.Null[time.Time]
	err := o.conn.QueryRowContext(ctx, countBacklog, o.at.Transaction, o.at.ID, domain.MaxBacklog).Scan(&b.Rows, &oldest, &b.Refused)
	if err != nil {
		return b, o.failed("count the outbox", err)
	}
	b.Oldest = oldest.V
	return b, nil
}

// Prune empties the slots whose last row was published longer ago than keep, and
// returns how many. A slot with an unpublished row stays, and so does one that
// somebody writes to at this moment.
func (o *Outbox) Prune(ctx context.Context, keep time.Duration) (freed int, err error) {
	if o.conn == nil {
		return 0, ErrNotLeading
	}
	slots, err := o.old(ctx, keep)
	if err != nil {
		return 0, o.failed("find the slots of the outbox", err)
	}
	for _, slot := range slots {
		emptied, err := o.empty(ctx, slot)
		if err != nil {
			return freed, o.failed(fmt.Sprintf("empty slot %d of the outbox", slot), err)
		}
		if emptied {
			freed++
		}
	}
	return freed, nil
}

// old returns the slots that hold something, all of it published longer ago than keep.
func (o *Outbox) old(ctx context.Context, keep time.Duration) (slots []int16, err error) {
	rows, err := o.conn.QueryContext(ctx, `
SELECT slot FROM outbox_slot
WHERE published_at < now() - make_interval(secs => $1) AND pg_relation_size(format('outbox_%s', slot)::regclass) > 0
ORDER BY slot`, keep.Seconds())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var slot int16
		if err := rows.Scan(&slot); err != nil {
			return nil, err
		}
		slots = append(slots, slot)
	}
	return slots, rows.Err()
}

// empty truncates a slot whose rows are all published. That is looked at under the
// lock: a transaction that began long ago may have added one meanwhile.
func (o *Outbox) empty(ctx context.Context, slot int16) (emptied bool, err error) {
	tx, err := o.conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if !emptied {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	table := fmt.Sprintf("outbox_%d", slot)
	if _, err := tx.ExecContext(ctx, "SET LOCAL lock_timeout = "+millis(outboxLockTimeout)); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		if sqlState(err) == lockNotAvail {
			return false, nil // somebody writes to it, or reads it: another time
		}
		return false, err
	}
	var held bool
	err = tx.QueryRowContext(ctx, `
SELECT c.epoch <> $1 OR EXISTS (SELECT FROM `+table+` AS o WHERE (o.xid, o.id) > (c.xid, c.id)) FROM outbox_cursor AS c`, o.epoch).Scan(&held)
	if err != nil || held {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, "TRUNCATE "+table); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	return true, nil
}
