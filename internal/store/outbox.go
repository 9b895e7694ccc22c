package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// RelayConns is the number of connections of an [Outbox].
const RelayConns = 1

// Bounds of one read of the outbox.
const (
	outboxRows  = 1000
	outboxBytes = 4 << 20 // of keys, values and headers, unless a single row is larger
)

// Bounds of the reader's session. A reader that stands still for longer than
// outboxIdle has lost its place to another one, whether it notices or not.
const (
	outboxIdle        = 60 * time.Second
	outboxLockTimeout = 200 * time.Millisecond
)

// outboxColumns names what the outbox needs of the schema.
const outboxColumns = `
SELECT o.id, o.xid, o.slot, o.created_at, o.kind, o.key, o.value, o.headers, c.epoch, s.published_at, r.refused_at
FROM outbox AS o, outbox_cursor AS c, outbox_slot AS s, outbox_refused AS r LIMIT 0`

// ErrNotLeading is returned when another instance reads the outbox, or nobody knows who does.
var ErrNotLeading = errors.New("not the reader of the outbox")

// Outbox reads what is to be published, for one instance at a time: the one whose
// session holds an advisory lock. It has one connection of its own. After any error
// the session is given up and Lead has to be asked again. Its methods are not for
// several goroutines at a time.
type Outbox struct {
	pool  *sql.DB
	conn  *sql.Conn // the session that holds the lock; nil while there is none
	epoch int64
	at    domain.OutboxPosition // everything up to here is published
}

// NewOutbox returns a reader. It does not connect: Lead does.
func NewOutbox(c Config) (*Outbox, error) {
	pool, err := open(c.URL, "billing-relay", RelayConns, byIndex(map[string]string{
		"lock_timeout":                        millis(c.SideTimeout),
		"statement_timeout":                   millis(c.SideTimeout),
		"idle_session_timeout":                millis(outboxIdle),
		"idle_in_transaction_session_timeout": millis(c.SideTimeout),
		// A cursor that a crash of the server takes back is published once more, which
		// is allowed; waiting for the disk at every step would be for nothing.
		"synchronous_commit": "off",
		// A holder whose machine is gone frees the lock within half a minute.
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	}))
	if err != nil {
		return nil, err
	}
	return &Outbox{pool: pool}, nil
}

// Close gives everything up.
func (o *Outbox) Close() error { return errors.Join(o.Resign(), o.pool.Close()) }

// Resign gives the place up, so that another instance can have it at once.
func (o *Outbox) Resign() error {
	if o.conn == nil {
		return nil
	}
	conn := o.conn
	o.conn = nil
	return drop(conn)
}

// drop ends a session for good: its locks end with it.
func drop(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if err != nil && !errors.Is(err, driver.ErrBadConn) && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// failed gives the session up after an error: what it still holds is uncertain.
func (o *Outbox) failed(what string, err error) error {
	return errors.Join(fmt.Errorf("%s: %w", what, err), o.Resign())
}

// Lead reports whether this instance is the reader, and makes it so where nobody
// else is.
func (o *Outbox) Lead(ctx context.Context) (bool, error) {
	if o.conn != nil {
		return true, nil
	}
	conn, err := o.pool.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("connect to read the outbox: %w", err)
	}
	var won bool
	err = conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(hashtextextended('billing.outbox', 'outbox_cursor'::regclass::oid::bigint))`).Scan(&won)
	if err != nil {
		return false, errors.Join(fmt.Errorf("lock the outbox: %w", err), drop(conn))
	}
	if !won {
		return false, conn.Close()
	}
	o.conn = conn
	if err := o.takeOver(ctx); err != nil {
		return false, o.failed("take the outbox over", err)
	}
	return true, nil
}

// takeOver fences off whoever read before, and finds out where to go on.
func (o *Outbox) takeOver(ctx context.Context) error {
	if err := o.restamp(ctx); err != nil {
		return err
	}
	return o.conn.QueryRowContext(ctx, `UPDATE outbox_cursor SET epoch = epoch + 1 RETURNING epoch, xid::text::bigint, id`).
		Scan(&o.epoch, &o.at.Transaction, &o.at.ID)
}

// ahead is true when the outbox knows transactions that this server has not begun
// yet: the tables came here by dump and restore, and the count of transactions did not.
const ahead = `
SELECT coalesce(greatest(c.xid, (SELECT xid FROM outbox ORDER BY xid DESC LIMIT 1)) >= pg_snapshot_xmax(pg_current_snapshot()), false)
FROM outbox_cursor AS c`

// restamp gives the rows of a restored outbox a transaction of this server. Which of
// them were published can no longer be told, so that all of them are, once more.
func (o *Outbox) restamp(ctx context.Context) error {
	var restored bool
	if err := o.conn.QueryRowContext(ctx, ahead).Scan(&restored); err != nil || !restored {
		return err
	}
	tx, err := o.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, step := range []string{
		`LOCK TABLE outbox IN EXCLUSIVE MODE`,
		`UPDATE outbox SET xid = pg_current_xact_id()`,
		`UPDATE outbox_cursor SET xid = pg_current_xact_id(), id = 0`,
	} {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
