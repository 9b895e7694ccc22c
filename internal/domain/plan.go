package domain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Plan is what an action would do, and what speaks for and against it.
type Plan struct {
	Done
	// Processed is where the event was first seen; nil when it is in processed_event
	// no more, or the record holds no valid event.
	Processed *Sighting
	Provider  View
}

// View is what the provider says about an event's key.
type View struct {
	Asked bool // false: it cannot be asked, or there is no event to ask about
	Found Found
	Err   error // it was asked and did not say
}

// String says it in a few words.
func (v View) String() string {
	switch {
	case !v.Asked:
		return "not asked"
	case v.Err != nil:
		return "did not say"
	case !v.Found.Known:
		return "knows nothing of it"
	}
	return string(v.Found.Status)
}

// lookupBound is the longest that a plan waits for the provider.
const lookupBound = 5 * time.Second

// Plan is DryRun together with what is known of the event here and at the
// provider. Its errors are those of Replay.
func (o *Operator) Plan(ctx context.Context, i Instruction) (Plan, error) {
	done, err := o.DryRun(ctx, i)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Done: done}
	id := done.Letter.EventID
	if id == uuid.Nil {
		return plan, nil
	}
	story, known, err := o.archive.Event(ctx, done.Letter.Group, id)
	switch {
	case err != nil:
		return Plan{}, fmt.Errorf("plan for dead letter %d: %w", i.LetterID, err)
	case known:
		plan.Processed, plan.Charge = story.Sighting, story.Charge
		if plan.Intent == nil {
			plan.Intent = story.Intent
		}
	}
	if o.finder == nil {
		return plan, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	plan.Provider.Asked = true
	plan.Provider.Found, plan.Provider.Err = o.finder.Find(ctx, id)
	return plan, nil
}

// Pacer says when the next letter may be acted on.
type Pacer interface {
	// Wait returns when it may be, or with an error when ctx ends first.
	Wait(ctx context.Context) error
}

// MaxBulk bounds the letters of one bulk action.
const MaxBulk = 500

// Bulk is the end of one letter of a bulk action: a plan, or why there is none.
type Bulk struct {
	LetterID int64
	Plan     Plan
	Err      error
}

// ReplayAll replays the open letters of a filter, the oldest first and at most
// filter.Limit, and tells each of its end; an error of one letter is no error of
// the others. With dry it only plans. It stops when ctx ends, when the pacer
// fails, or when the store fails it three times in a row.
func (o *Operator) ReplayAll(
	ctx context.Context, filter LetterFilter, by, why string, dry bool, pace Pacer, tell func(Bulk),
) error {
	i := Instruction{Kind: ActionReplay, By: by, Why: why}
	if err := i.check(); err != nil {
		return err
	}
	filter.State, filter.Oldest = LetterOpen, true
	left, failures := filter.Limit, 0
	for left > 0 {
		filter.Limit = min(left, MaxPageLimit)
		page, err := o.archive.Letters(ctx, filter)
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		for n := range page.Items {
			if err := pace.Wait(ctx); err != nil {
				return fmt.Errorf("stopped before dead letter %d: %w", page.Items[n].ID, err)
			}
			i.LetterID = page.Items[n].ID
			b := o.one(ctx, i, dry)
			if failures++; b.Err == nil || Refused(b.Err) {
				failures = 0
			}
			tell(b)
			if failures == maxFailures {
				return fmt.Errorf("%d letters in a row: %w", failures, b.Err)
			}
		}
		left -= len(page.Items)
		if filter.Cursor = page.Next; page.Next == "" {
			return nil
		}
	}
	return nil
}

// maxFailures is how often in a row the store may fail a bulk action.
const maxFailures = 3

// one plans or replays one letter.
func (o *Operator) one(ctx context.Context, i Instruction, dry bool) Bulk {
	b := Bulk{LetterID: i.LetterID}
	if dry {
		b.Plan, b.Err = o.Plan(ctx, i)
	} else {
		b.Plan.Done, b.Err = o.Replay(ctx, i.LetterID, i.By, i.Why)
	}
	return b
}

// Refused reports whether an action was refused, and nothing changed, rather than
// that it failed.
func Refused(err error) bool {
	var conflict *ConflictError
	var input *InputError
	return errors.Is(err, ErrNoLetter) || errors.As(err, &conflict) || errors.As(err, &input)
}
