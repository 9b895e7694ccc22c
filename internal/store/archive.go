package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

var _ domain.Archive = (*Store)(nil)

// Charges implements [domain.Archive].
func (s *Store) Charges(ctx context.Context, f domain.ChargeFilter) (domain.Page[domain.Charge], error) {
	var page domain.Page[domain.Charge]
	limit := pageLimit(f.Limit)
	q := s.archive.WithContext(ctx).Order("settled_at DESC, event_id DESC").Limit(limit + 1)
	if f.OrderID != 0 {
		q = q.Where("order_id = ?", f.OrderID)
	}
	if f.Status != "" {
		q = q.Where("status = ?", string(f.Status))
	}
	if f.Cursor != "" {
		at, id, err := parseChargeCursor(f.Cursor)
		if err != nil {
			return page, err
		}
		q = q.Where("(settled_at, event_id) < (?, ?)", at, id)
	}
	var rows []charge
	if err := q.Find(&rows).Error; err != nil {
		return page, fmt.Errorf("read charge: %w", err)
	}
	for i := range rows {
		if i == limit {
			page.Next = chargeCursor(&rows[i-1])
			break
		}
		c, err := rows[i].charge()
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, c)
	}
	return page, nil
}

// Letters implements [domain.Archive].
func (s *Store) Letters(ctx context.Context, f domain.LetterFilter) (domain.Page[domain.Letter], error) {
	var page domain.Page[domain.Letter]
	limit := pageLimit(f.Limit)
	q := s.archive.WithContext(ctx).Omit("key", "value", "headers").Limit(limit + 1)
	order, behind := "id DESC", "id < ?"
	if f.Oldest {
		order, behind = "id", "id > ?"
	}
	q = q.Order(order)
	if f.Reason != "" {
		q = q.Where("reason = ?", string(f.Reason))
	}
	if f.State != "" {
		q = q.Where("state = ?", string(f.State))
	}
	if f.EventID != uuid.Nil {
		q = q.Where("event_id = ?", f.EventID)
	}
	if !f.Since.IsZero() {
		q = q.Where("created_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		q = q.Where("created_at < ?", f.Until)
	}
	if f.Cursor != "" {
		last, err := idCursor(f.Cursor)
		if err != nil {
			return page, err
		}
		q = q.Where(behind, last)
	}
	var rows []deadLetter
	if err := q.Find(&rows).Error; err != nil {
		return page, fmt.Errorf("read dead_letter: %w", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = strconv.FormatInt(rows[limit-1].ID, 10)
	}
	var err error
	page.Items, err = lettersOf(rows)
	return page, err
}

// Letter implements [domain.Archive].
func (s *Store) Letter(ctx context.Context, id int64) (domain.Letter, bool, error) {
	return letterByID(s.archive.WithContext(ctx), id)
}

func lettersOf(rows []deadLetter) ([]domain.Letter, error) {
	letters := make([]domain.Letter, len(rows))
	for i := range rows {
		l, err := rows[i].letter()
		if err != nil {
			return nil, err
		}
		letters[i] = l
	}
	return letters, nil
}

// pageLimit bounds a page, whatever was asked for.
func pageLimit(asked int) int {
	if asked < 1 {
		return domain.DefaultPageLimit
	}
	return min(asked, domain.MaxPageLimit)
}

// chargeCursor points behind a charge in the list's order.
func chargeCursor(c *charge) string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.SettledAt.UTC().Format(time.RFC3339Nano) + "|" + c.EventID.String()))
}

func parseChargeCursor(cursor string) (time.Time, uuid.UUID, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return time.Time{}, uuid.Nil, domain.ErrCursor
	}
	instant, event, _ := strings.Cut(string(b), "|")
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		return time.Time{}, uuid.Nil, domain.ErrCursor
	}
	id, err := uuid.Parse(event)
	if err != nil {
		return time.Time{}, uuid.Nil, domain.ErrCursor
	}
	return at, id, nil
}
