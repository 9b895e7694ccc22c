package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// RetentionConns is the number of connections of a [Ranges].
const RetentionConns = 1

// Bounds of the session that forgets. Whoever stands still for longer than rangesIdle
// has lost its place to another instance, whether it notices or not.
const (
	rangesIdle      = 60 * time.Second
	rangesStatement = 20 * time.Second // one statement
	rangesPause     = 3 * time.Second  // between two statements of a transaction: batches may stand behind its locks
	rangesLock      = time.Second      // a wait for a lock, where nothing shorter is asked for
)

// The locks of retention: one is held for as long as an instance leads, the other for
// the length of one turn, whoever makes it.
const (
	lockLead = `SELECT pg_try_advisory_lock(hashtextextended('billing.retention', ` + thisTable + `))`
	lockTurn = `SELECT pg_try_advisory_lock(hashtextextended('billing.retention.turn', ` + thisTable + `))`
	freeTurn = `SELECT pg_advisory_unlock(hashtextextended('billing.retention.turn', ` + thisTable + `))`

	// thisTable tells the tables of one schema from those of another: such locks are the whole database's.
	thisTable = `'processed_event'::regclass::oid::bigint`
)

// ErrNotKeeping is returned when this instance has no session that may forget.
var ErrNotKeeping = errors.New("not the instance that does retention")

// Ranges keeps processed_event, and whatever else is forgotten, for one instance at a
// time: the one whose session holds an advisory lock. All that it does runs on that very
// session, its only connection, so that an instance that has lost it does nothing
// more. When the session ends, by an error or because ctx did, it is given up, and Lead or
// Begin has to be asked again. Its methods are not for several goroutines at a time.
type Ranges struct {
	pool    *sql.DB
	conn    *sql.Conn // the session; nil while there is none
	leading bool
	begun   bool  // a turn
	scanMax int64 // bytes
}

// NewRanges returns one that is not connected: Lead connects.
func NewRanges(c Config) (*Ranges, error) {
	pool, err := open(c.URL, "billing-retention", RetentionConns, byIndex(map[string]string{
		"lock_timeout":                        millis(rangesLock),
		"statement_timeout":                   millis(rangesStatement),
		"idle_session_timeout":                millis(rangesIdle),
		"idle_in_transaction_session_timeout": millis(rangesPause),
		// Rows are looked for in the order of an index, a batch at a time: without these all
		// that are overdue would be read and sorted for each batch.
		"enable_bitmapscan": "off", "enable_material": "off",
		// A holder whose machine is gone frees the lock within half a minute.
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	}))
	if err != nil {
		return nil, err
	}
	return &Ranges{pool: pool, scanMax: scanMax}, nil
}

// Close gives everything up.
func (r *Ranges) Close() error { return errors.Join(r.Resign(), r.pool.Close()) }

// Resign gives the place up, so that another instance can have it at once.
func (r *Ranges) Resign() error {
	if r.conn == nil {
		return nil
	}
	conn := r.conn
	r.conn, r.leading, r.begun = nil, false, false
	return drop(conn)
}

// failed gives the session up when it does not survive an error: one that still
// answers, outside any transaction, holds its locks.
func (r *Ranges) failed(what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if r.conn == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), rangesLock)
	defer cancel()
	if _, gone := r.conn.ExecContext(ctx, "SELECT"); gone != nil {
		return errors.Join(err, r.Resign())
	}
	return err
}

// Lead reports whether this instance is the one that forgets, and makes it so where
// nobody else is. Asked often enough it also keeps the session from being ended as idle.
func (r *Ranges) Lead(ctx context.Context) (bool, error) {
	if err := r.hold(ctx, &r.leading, lockLead); err != nil {
		return false, fmt.Errorf("lead retention: %w", err)
	}
	return r.leading, nil
}

// Begin takes the lock of a turn, which two of them never hold at a time: false while
// another one is under way. Whoever holds it already goes on holding it. It needs no lead,
// and connects where there is no session.
func (r *Ranges) Begin(ctx context.Context) (bool, error) {
	if err := r.hold(ctx, &r.begun, lockTurn); err != nil {
		return false, fmt.Errorf("begin a turn of retention: %w", err)
	}
	return r.begun, nil
}

// hold takes a lock, or finds out that the session which holds it is alive.
func (r *Ranges) hold(ctx context.Context, held *bool, lock string) error {
	if r.conn == nil {
		conn, err := r.pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		r.conn = conn
	}
	var err error
	if *held {
		_, err = r.conn.ExecContext(ctx, "SELECT")
	} else {
		err = r.conn.QueryRowContext(ctx, lock).Scan(held)
	}
	if err != nil {
		return errors.Join(err, r.Resign())
	}
	return nil
}

// End frees the lock of a turn. Where the session is gone it is free already.
func (r *Ranges) End(ctx context.Context) error {
	if !r.begun {
		return nil
	}
	r.begun = false
	if _, err := r.conn.ExecContext(ctx, freeTurn); err != nil {
		return errors.Join(fmt.Errorf("end a turn of retention: %w", err), r.Resign())
	}
	return nil
}

// On runs fn on the session, for chores: what they remove, they remove as the one that
// leads. ErrNotKeeping where there is no session. Fn leaves no transaction open.
func (r *Ranges) On(ctx context.Context, what string, fn func(context.Context, *sql.Conn) error) error {
	if r.conn == nil {
		return fmt.Errorf("%s: %w", what, ErrNotKeeping)
	}
	if err := fn(ctx, r.conn); err != nil {
		return r.failed(what, err)
	}
	return nil
}
