package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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
	err := s.archive.WithContext(ctx).Raw(latestReport).Find(&rows).Error
	if err != nil {
		return domain.RetentionReport{}, false, fmt.Errorf("read retention_turn: %w", err)
	}
	if len(rows) == 0 {
		return domain.RetentionReport{}, false, nil
	}
	report, err := decodeReport(rows[0].Report, rows[0].SucceededAt)
	return report, err == nil, err
}

const latestReport = "SELECT succeeded_at, report FROM retention_turn"

// Latest returns the report of the latest turn of retention, of whatever instance; false
// before the first one.
func (r *Ranges) Latest(ctx context.Context) (domain.RetentionReport, bool, error) {
	if r.conn == nil {
		return domain.RetentionReport{}, false, ErrNotKeeping
	}
	var succeeded *time.Time
	var text []byte
	switch err := r.conn.QueryRowContext(ctx, latestReport).Scan(&succeeded, &text); {
	case errors.Is(err, sql.ErrNoRows):
		return domain.RetentionReport{}, false, nil
	case err != nil:
		return domain.RetentionReport{}, false, r.failed("read retention_turn", err)
	}
	report, err := decodeReport(text, succeeded)
	return report, err == nil, err
}

func decodeReport(text []byte, succeeded *time.Time) (report domain.RetentionReport, err error) {
	if err := json.Unmarshal(text, &report); err != nil {
		return report, fmt.Errorf("decode retention_turn: %w", err)
	}
	if succeeded != nil {
		report.SucceededAt = *succeeded
	}
	return report, nil
}
