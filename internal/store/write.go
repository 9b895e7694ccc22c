package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// Write implements [domain.Tx]. What ends goes first, so that an order is free for
// whoever takes it in the same transaction.
func (t tx) Write(ctx context.Context, w domain.Writes) error {
	db := t.db.WithContext(ctx)
	ends, changes, news := w.Delete, refs(w.Update), refs(w.Insert)
	if err := compare(db, slices.Concat(ends, changes)); err != nil {
		return err
	}
	if err := deleteIntents(db, ends); err != nil {
		return err
	}
	if err := updateIntents(db, changes); err != nil {
		return err
	}
	slices.SortFunc(news, byOrder)
	for chunk := range chunks(news, recordBytes) {
		n, err := insertIntents(db, chunk, "ON CONFLICT (event_id) DO NOTHING")
		if err != nil {
			return err
		}
		if n != len(chunk) {
			return fmt.Errorf("insert charge_intent: %w", domain.ErrMoved)
		}
	}
	return t.insertCharges(ctx, w.Charges)
}

// lockAndCompare locks rows in the order of the locks and says whether they are
// the ones asked for, column by column.
const lockAndCompare = `
SELECT coalesce(array_agg(event_id) = ? AND array_agg(token) = ? AND array_agg(state) = ? AND array_agg(claimed) = ?, false) AS same
FROM (
	SELECT event_id, token, state, claimed FROM charge_intent WHERE event_id = ANY(?)
	ORDER BY order_id, event_id FOR UPDATE
) AS now`

// compare locks the rows that are to be changed and holds them against what they
// were when they were read. The comparing is left to the database: there are as
// many as a batch has events, and as a rule they are all the same.
func compare(db *gorm.DB, intents []*domain.Intent) error {
	if len(intents) == 0 {
		return nil
	}
	slices.SortFunc(intents, byOrder)
	ids := columnOf(intents, eventID)
	var now struct{ Same bool }
	// By Find: Scan would spell out every statement for its log, logged or not.
	err := db.Raw(lockAndCompare, ids,
		columnOf(intents, func(in *domain.Intent) pgtype.UUID { return toUUID(in.Was.Token) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Text { return toText(string(in.Was.State)) }),
		columnOf(intents, func(in *domain.Intent) pgtype.Bool { return toBool(in.Was.Claimed) }),
		ids,
	).Find(&now).Error
	if err != nil {
		return fmt.Errorf("lock charge_intent: %w", err)
	}
	if !now.Same {
		return fmt.Errorf("charge_intent of %s and %d more: %w", intents[0].EventID, len(intents)-1, domain.ErrMoved)
	}
	return nil
}

// deleteIntents ends intents that are locked.
func deleteIntents(db *gorm.DB, intents []*domain.Intent) error {
	if len(intents) == 0 {
		return nil
	}
	result := db.Exec("DELETE FROM charge_intent WHERE event_id = ANY(?)", columnOf(intents, eventID))
	if result.Error != nil {
		return fmt.Errorf("delete charge_intent: %w", result.Error)
	}
	return moved("delete charge_intent", result, len(intents))
}

const updateIntent = `
UPDATE charge_intent AS i SET
	state = u.state, claimed = u.claimed, maybe_sent = u.maybe_sent, token = u.token, owner = u.owner,
	lease_until = u.lease_until, due_at = u.due_at, first_attempt_at = u.first_attempt_at, replayed_at = u.replayed_at, attempts = u.attempts,
	answer = u.answer::jsonb, last_error = u.last_error, consumer_group = u.consumer_group
FROM unnest(?::uuid[], ?::text[], ?::boolean[], ?::boolean[], ?::uuid[], ?::text[], ?::timestamptz[], ?::timestamptz[],
	?::timestamptz[], ?::timestamptz[], ?::bigint[], ?::text[], ?::text[], ?::text[]) AS u (event_id, state, claimed, maybe_sent, token, owner,
	lease_until, due_at, first_attempt_at, replayed_at, attempts, answer, last_error, consumer_group)
WHERE i.event_id = u.event_id`

// updateIntents writes intents that are locked.
func updateIntents(db *gorm.DB, intents []*domain.Intent) error {
	if len(intents) == 0 {
		return nil
	}
	answers, err := answerColumn(intents)
	if err != nil {
		return err
	}
	v := volatile(intents)
	result := db.Exec(updateIntent, columnOf(intents, eventID), v.state, v.claimed, v.maybeSent, v.token, v.owner,
		v.leaseUntil, v.dueAt, v.firstAttemptAt, v.replayedAt, v.attempts, answers, v.lastError, v.group)
	switch {
	case sqlState(result.Error) == uniqueViolation:
		return fmt.Errorf("update charge_intent: %w: %w", domain.ErrOrderTaken, result.Error)
	case result.Error != nil:
		return fmt.Errorf("update charge_intent: %w", result.Error)
	}
	return moved("update charge_intent", result, len(intents))
}

// moved is domain.ErrMoved when a statement met other rows than it was made for.
func moved(what string, result *gorm.DB, want int) error {
	if int(result.RowsAffected) != want {
		return fmt.Errorf("%s: %d of %d rows: %w", what, result.RowsAffected, want, domain.ErrMoved)
	}
	return nil
}
