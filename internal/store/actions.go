package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// letterAction is a row of letter_action.
type letterAction struct {
	ID       int64 `gorm:"primaryKey;autoIncrement"`
	LetterID int64
	Action   string
	Actor    string
	Reason   string
	Outcome  *string
	Result   string
	At       time.Time
}

func (letterAction) TableName() string { return "letter_action" }

// Letter implements [domain.Tx].
func (t tx) Letter(ctx context.Context, id int64) (domain.Letter, bool, error) {
	return letterByID(t.db.WithContext(ctx), id)
}

func letterByID(db *gorm.DB, id int64) (domain.Letter, bool, error) {
	var rows []deadLetter
	if err := db.Where("id = ?", id).Limit(1).Find(&rows).Error; err != nil {
		return domain.Letter{}, false, fmt.Errorf("read dead_letter: %w", err)
	}
	if len(rows) == 0 {
		return domain.Letter{}, false, nil
	}
	l, err := rows[0].letter()
	return l, err == nil, err
}

// Turn implements [domain.Tx].
func (t tx) Turn(ctx context.Context, was, now domain.Letter, a domain.Action) error {
	db := t.db.WithContext(ctx)
	event, order := uuidOrNull(now.EventID), int8OrNull(now.OrderID)
	result := db.Model(&deadLetter{}).
		Where("id = ? AND state = ? AND reason = ?", was.ID, string(was.State), string(was.Reason)).
		Updates(map[string]any{
			"state": string(now.State), "reason": string(now.Reason), "detail": now.Detail,
			"event_id": event, "order_id": order, "updated_at": a.At,
		})
	if result.Error != nil {
		return fmt.Errorf("update dead_letter: %w", result.Error)
	}
	if err := moved("update dead_letter", result, 1); err != nil {
		return err
	}
	row := letterAction{
		LetterID: a.LetterID, Action: string(a.Kind), Actor: a.By, Reason: a.Why, Outcome: textOrNil(string(a.Outcome)),
		Result: string(a.Result), At: a.At,
	}
	if err := db.Create(&row).Error; err != nil {
		return fmt.Errorf("insert letter_action: %w", err)
	}
	return nil
}

// Actions implements [domain.Archive].
func (s *Store) Actions(ctx context.Context, letters []int64) ([]domain.Action, error) {
	return actionsOf(s.archive.WithContext(ctx), letters)
}

func actionsOf(db *gorm.DB, letters []int64) ([]domain.Action, error) {
	if len(letters) == 0 {
		return nil, nil
	}
	var rows []letterAction
	err := db.Where("letter_id = ANY(?)", columnOf(letters, toInt8)).
		Order("id DESC").Limit(domain.MaxActions).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read letter_action: %w", err)
	}
	actions := make([]domain.Action, len(rows))
	for i, r := range rows {
		actions[i] = domain.Action{
			LetterID: r.LetterID, Kind: domain.ActionKind(r.Action), By: r.Actor, Why: r.Reason,
			Outcome: domain.Outcome(orEmpty(r.Outcome)), Result: domain.Result(r.Result), At: r.At,
		}
	}
	return actions, nil
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
