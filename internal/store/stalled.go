package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// endStalled is told the bounds of the flow's pools. A session that is active, and reads from its client, is in the midst of a
// COPY: any other statement is there as a whole before it begins.
const endStalled = `
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) AS ended
FROM pg_stat_activity
WHERE datname = current_database() AND usename = session_user AND state = 'active' AND wait_event = 'ClientRead'
	AND query_start < clock_timestamp() - make_interval(secs => CASE application_name WHEN ? THEN ?::float8 WHEN ? THEN ?::float8 END)`

// EndStalled ends the sessions of the flow's pools, those of other instances too, that have waited for the next row of a COPY
// until after their statement_timeout, and returns how many. PostgreSQL heeds no timeout there, or it would lose its place
// between two messages: were a process stopped right then, or its host cut off, what it has claimed would stay locked for as
// long as the connection stands, and no database of the server could be dropped.
func (s *Store) EndStalled(ctx context.Context) (int, error) {
	var all struct{ Ended int }
	err := s.archive.WithContext(ctx).Transaction(func(db *gorm.DB) error {
		// A login that takes on another role may end no session as that one: those are its own.
		if err := db.Exec("SET LOCAL ROLE NONE").Error; err != nil {
			return err
		}
		return db.Raw(endStalled, mainName, s.mainTimeout.Seconds(), sideName, s.sideTimeout.Seconds()).Find(&all).Error
	})
	if err != nil {
		return 0, fmt.Errorf("end stalled sessions: %w", err)
	}
	return all.Ended, nil
}

// Names of the flow's pools, as the database shows them.
const (
	mainName = "billing"
	sideName = "billing-side"
)

// statementTimeout is the longest statement of the main pool: a claim that waits for its twin, and what it does then.
func (c *Config) statementTimeout() time.Duration { return c.LockTimeout + c.SideTimeout }
