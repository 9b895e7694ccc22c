package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// turnColumns names what retention needs of the schema.
const turnColumns = `SELECT one, finished_at, succeeded_at, instance, report FROM retention_turn LIMIT 0`

const saveReport = `
INSERT INTO retention_turn AS t (finished_at, succeeded_at, instance, report) VALUES ($1, $2, $3, $4)
ON CONFLICT (one) DO UPDATE SET
	finished_at = excluded.finished_at, succeeded_at = coalesce(excluded.succeeded_at, t.succeeded_at),
	instance = excluded.instance, report = excluded.report`

// Save keeps the report of a turn for every instance to show.
func (r *Ranges) Save(ctx context.Context, report domain.RetentionReport) error {
	if r.conn == nil {
		return ErrNotKeeping
	}
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode the retention report: %w", err)
	}
	var succeeded *time.Time
	if report.Error == "" {
		succeeded = &report.FinishedAt
	}
	if _, err := r.conn.ExecContext(ctx, saveReport, report.FinishedAt, succeeded, report.Instance, text); err != nil {
		return r.failed("save the retention report", err)
	}
	return nil
}

// Retention returns the report of the latest turn of retention, of whatever instance;
// false before the first one.
func (s *Store) Retention(ctx context.Context) (domain.RetentionReport, bool, error) {
	var rows []struct {
		SucceededAt *time.Time
		Report      []byte
	}
	var report domain.RetentionReport
	err := s.archive.WithContext(ctx).Raw("SELECT succeeded_at, report FROM retention_turn").Find(&rows).Error
	if err != nil {
		return report, false, fmt.Errorf("read retention_turn: %w", err)
	}
	if len(rows) == 0 {
		return report, false, nil
	}
	if err := json.Unmarshal(rows[0].Report, &report); err != nil {
		return report, false, fmt.Errorf("decode retention_turn: %w", err)
	}
	if rows[0].SucceededAt != nil {
		report.SucceededAt = *rows[0].SucceededAt
	}
	return report, true, nil
}
