package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Bounds of a chore.
const (
	// choreTime is how long a chore goes on in one turn; what is left waits for the next.
	choreTime = 10 * time.Second
	// chorePause is the pause between two of its statements.
	chorePause = 20 * time.Millisecond
)

const (
	// lettersFor is how long a dead letter is kept that is closed.
	lettersFor = 90 * 24 * time.Hour
	// letterRows bounds the letters that one statement removes: each may hold a megabyte.
	letterRows = 500
	// MaxDuplicateLog is how many rows the log of duplicates keeps.
	MaxDuplicateLog = 100_000
)

// session is where a chore does its work: a connection or a pool.
type session interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Chore forgets what one kind of table needs no more. Nothing is lost or counted twice
// when several instances are at it at once, though one is enough.
type Chore struct {
	name string
	on   func(ctx context.Context, what string, fn func(context.Context, session) error) error
	run  func(context.Context, session, time.Time) (int64, error)
}

// Name is the chore's: short, and the same for ever.
func (c *Chore) Name() string { return c.name }

// Run forgets what is too old at an instant, for some ten seconds at most, and returns
// how many rows went.
func (c *Chore) Run(ctx context.Context, now time.Time) (removed int64, err error) {
	err = c.on(ctx, c.name, func(ctx context.Context, db session) error {
		removed, err = c.run(ctx, db, now)
		return err
	})
	return removed, err
}

// choresOn are all there are.
func choresOn(on func(context.Context, string, func(context.Context, session) error) error) []*Chore {
	return []*Chore{
		{name: "statistics", on: on, run: rollUp},
		{name: "dead_letters", on: on, run: forgetLetters},
		{name: "duplicate_log", on: on, run: trimDuplicateLog},
	}
}

// Chores are those of whoever does retention: they work on its session, and on no other.
func (r *Ranges) Chores() []*Chore {
	return choresOn(func(ctx context.Context, what string, fn func(context.Context, session) error) error {
		return r.On(ctx, what, func(ctx context.Context, conn *sql.Conn) error { return fn(ctx, conn) })
	})
}

// The letter of an event that is still unfinished stays, whatever its own state is.
// What a letter was about goes to its actions, which are kept.
const deleteLetters = `
WITH old AS MATERIALIZED (
	SELECT l.id FROM dead_letter AS l
	WHERE l.state <> 'open' AND l.updated_at < $1
		AND NOT EXISTS (SELECT FROM charge_intent AS i WHERE i.event_id = l.event_id)
	ORDER BY l.updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
	DELETE FROM dead_letter AS l USING old WHERE l.id = old.id RETURNING l.id, l.event_id, l.topic, l.partition, l."offset"
), told AS (
	UPDATE letter_action AS a SET event_id = g.event_id, topic = g.topic, partition = g.partition, "offset" = g."offset"
	FROM gone AS g WHERE a.letter_id = g.id
)
SELECT count(*) FROM gone`

// forgetLetters removes dead letters that were closed long ago.
func forgetLetters(ctx context.Context, db session, now time.Time) (int64, error) {
	removed, err := inSlices(ctx, letterRows, func(ctx context.Context) (int64, error) {
		return affected(ctx, db, deleteLetters, now.Add(-lettersFor), letterRows)
	})
	if err != nil {
		return removed, fmt.Errorf("delete dead_letter: %w", err)
	}
	return removed, nil
}

// lastToGo is the id of the youngest row that is too many. Ids have gaps, so that rows
// are counted, once there may be too many of them.
const lastToGo = `
SELECT coalesce((
	SELECT id FROM duplicate_log
	WHERE (SELECT max(id) - min(id) FROM duplicate_log) >= $1
	ORDER BY id DESC OFFSET $1 LIMIT 1
), 0)`

const deleteDuplicates = `
WITH gone AS (
	DELETE FROM duplicate_log WHERE id IN (SELECT id FROM duplicate_log WHERE id <= $1 ORDER BY id LIMIT $2) RETURNING 1
)
SELECT count(*) FROM gone`

// trimDuplicateLog removes the oldest rows of the log of duplicates beyond its bound.
func trimDuplicateLog(ctx context.Context, db session, _ time.Time) (int64, error) {
	last, err := affected(ctx, db, lastToGo, MaxDuplicateLog)
	if err != nil {
		return 0, fmt.Errorf("measure duplicate_log: %w", err)
	}
	if last == 0 {
		return 0, nil
	}
	removed, err := inSlices(ctx, pruneRows, func(ctx context.Context) (int64, error) {
		return affected(ctx, db, deleteDuplicates, last, pruneRows)
	})
	if err != nil {
		return removed, fmt.Errorf("delete duplicate_log: %w", err)
	}
	return removed, nil
}

// affected runs a statement that returns a number.
func affected(ctx context.Context, db session, statement string, args ...any) (n int64, err error) {
	return n, db.QueryRowContext(ctx, statement, args...).Scan(&n)
}

// inSlices repeats a step that handles at most limit rows until it finds fewer, or
// the time of a turn is over. What a step has done stands.
func inSlices(ctx context.Context, limit int64, step func(context.Context) (int64, error)) (total int64, err error) {
	over := time.NewTimer(choreTime)
	defer over.Stop()
	pause := time.NewTicker(chorePause)
	defer pause.Stop()
	for {
		n, err := step(ctx)
		total += n
		if err != nil || n < limit {
			return total, err
		}
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case <-over.C:
			return total, nil
		case <-pause.C:
		}
	}
}
