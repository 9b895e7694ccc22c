package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// maxStoryLetters bounds the dead letters that the story of an event shows.
const maxStoryLetters = 20

// Event implements [domain.Archive]. It reads one snapshot: an intent that ends
// meanwhile is seen either with its charge or as it was before.
func (s *Store) Event(ctx context.Context, group string, id uuid.UUID) (domain.EventStory, bool, error) {
	story := domain.EventStory{EventID: id, Group: group}
	err := snapshot(ctx, s.archive, func(db *gorm.DB) error {
		for _, read := range []func(*gorm.DB, *domain.EventStory) error{
			claimOf, intentOf, chargeOf, lettersOfEvent, duplicatesOf,
		} {
			if err := read(db, &story); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return story, false, fmt.Errorf("story of %s: %w", id, err)
	}
	known := story.Sighting != nil || story.Charge != nil || story.Intent != nil ||
		len(story.Letters) > 0 || len(story.Duplicates) > 0
	return story, known, nil
}

func claimOf(db *gorm.DB, story *domain.EventStory) error {
	var rows []processedEvent
	err := db.Where("event_id = ? AND consumer_group = ?", story.EventID, story.Group).Limit(1).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read processed_event: %w", err)
	}
	if len(rows) == 1 {
		sighting := rows[0].sighting()
		story.Sighting, story.ProcessedAt = &sighting, &rows[0].ProcessedAt
	}
	return nil
}

// intentOf reads the event's intent without the bytes of its record.
func intentOf(db *gorm.DB, story *domain.EventStory) (err error) {
	var rows []chargeIntent
	if err := db.Omit(intentBytes()...).Where("event_id = ?", story.EventID).Find(&rows).Error; err != nil {
		return fmt.Errorf("read charge_intent: %w", err)
	}
	if len(rows) == 1 {
		story.Intent, err = rows[0].intent()
	}
	return err
}

func chargeOf(db *gorm.DB, story *domain.EventStory) error {
	var rows []charge
	if err := db.Where("event_id = ?", story.EventID).Find(&rows).Error; err != nil {
		return fmt.Errorf("read charge: %w", err)
	}
	if len(rows) == 1 {
		c, err := rows[0].charge()
		if err != nil {
			return err
		}
		story.Charge = &c
	}
	return nil
}

// lettersOfEvent reads the event's dead letters and what was done to them.
func lettersOfEvent(db *gorm.DB, story *domain.EventStory) error {
	var rows []deadLetter
	err := db.Omit("key", "value", "headers").Where("event_id = ?", story.EventID).
		Order("id DESC").Limit(maxStoryLetters).Find(&rows).Error
	if err != nil {
		return fmt.Errorf("read dead_letter: %w", err)
	}
	if story.Letters, err = lettersOf(rows); err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	story.Actions, err = actionsOf(db, ids)
	return err
}

// duplicatesOf reads the event's latest lines of the log, and how far back that goes.
func duplicatesOf(db *gorm.DB, story *domain.EventStory) error {
	rows, err := loggedOf(db, domain.DuplicateFilter{Group: story.Group, EventID: story.EventID}, domain.MaxStoryDuplicates+1)
	if err != nil {
		return err
	}
	if story.MoreDuplicates = len(rows) > domain.MaxStoryDuplicates; story.MoreDuplicates {
		rows = rows[:domain.MaxStoryDuplicates]
	}
	story.Duplicates = rows
	var oldest []loggedDuplicate
	if err := db.Order("id").Limit(1).Find(&oldest).Error; err != nil {
		return fmt.Errorf("read duplicate_log: %w", err)
	}
	if len(oldest) == 1 {
		story.LogBegins, story.LogCut = oldest[0].SeenAt, oldest[0].ID > 1
	}
	return nil
}
