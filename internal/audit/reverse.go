package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// readTables holds the rows that name records of the range against the topic
// and against the provider.
func (a *Auditor) readTables(ctx context.Context) error {
	err := firstError(
		func() error {
			return a.eachCharge(ctx, func(page []domain.Charge) error { return a.takeCharges(ctx, page) })
		},
		func() error {
			return a.eachIntent(ctx, func(page []domain.Intent) error { return a.takeIntents(ctx, page) })
		},
		func() error {
			return a.eachSighting(ctx, func(p domain.Sighting) error { return a.doubt(ctx, rowOf(&p)) })
		},
	)
	if err != nil {
		return err
	}
	return firstError(
		func() error { return a.readCrowded(ctx) },
		func() error { return a.settleOrphans(ctx) },
		func() error { return a.settleQuestions(ctx) },
	)
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// eachCharge hands over the charges of the range, by pages.
func (a *Auditor) eachCharge(ctx context.Context, fn func([]domain.Charge) error) error {
	mark, rows := a.since(), int64(0)
	for {
		page, next, err := a.books.ChargesAfter(ctx, mark, pageRows)
		if err != nil || len(page) == 0 {
			return err
		}
		mark, rows = next, rows+int64(len(page))
		a.options.Progress("charges", rows, -1)
		page = slices.DeleteFunc(page, func(c domain.Charge) bool { return !a.inRange(c.Source) })
		if err := fn(page); err != nil {
			return err
		}
	}
}

// eachIntent hands over the intents of the range, by pages.
func (a *Auditor) eachIntent(ctx context.Context, fn func([]domain.Intent) error) error {
	last, rows := uuid.Nil, int64(0)
	for {
		page, err := a.books.IntentsAfter(ctx, last, pageRows)
		if err != nil || len(page) == 0 {
			return err
		}
		last, rows = page[len(page)-1].EventID, rows+int64(len(page))
		a.options.Progress("intents", rows, -1)
		page = slices.DeleteFunc(page, func(in domain.Intent) bool { return !a.inRange(in.Record.Coordinates) })
		if err := fn(page); err != nil {
			return err
		}
	}
}

// eachSighting hands over the rows of processed_event of the range.
func (a *Auditor) eachSighting(ctx context.Context, fn func(domain.Sighting) error) error {
	mark, rows := a.since(), int64(0)
	for {
		page, next, err := a.books.SightingsAfter(ctx, a.options.Group, mark, pageRows)
		if err != nil || len(page) == 0 {
			return err
		}
		mark, rows = next, rows+int64(len(page))
		a.options.Progress("events", rows, -1)
		for i := range page {
			if !a.inRange(page[i].Source) {
				continue
			}
			if err := fn(page[i]); err != nil {
				return err
			}
		}
	}
}

// takeCharges checks the charges of a page that belong to the range.
func (a *Auditor) takeCharges(ctx context.Context, charges []domain.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	orders := make([]int64, len(charges))
	for i := range charges {
		orders[i] = charges[i].OrderID
	}
	captures, holders, err := a.books.CapturesOf(ctx, orders)
	if err != nil {
		return err
	}
	questions := make([]question, len(charges))
	for i := range charges {
		c := &charges[i]
		if n := captures[c.OrderID]; n > 1 && c.Status == domain.ChargeCaptured {
			a.found.add(Finding{
				Problem: DoubleCapture, At: c.Source, EventID: c.EventID, OrderID: c.OrderID,
				What: fmt.Sprintf("the order has %d captured charges", n),
			})
		}
		if err := a.doubt(ctx, chargeRow(c)); err != nil {
			return err
		}
		questions[i] = questionOf(c, holders)
	}
	return a.ask(ctx, "charges", questions)
}

// takeIntents checks the intents of a page that belong to the range.
func (a *Auditor) takeIntents(ctx context.Context, intents []domain.Intent) error {
	questions := make([]question, len(intents))
	for i := range intents {
		if err := a.doubt(ctx, intentRow(&intents[i])); err != nil {
			return err
		}
		questions[i] = a.questionAbout(&intents[i])
	}
	return a.ask(ctx, "intents", questions)
}

// readCrowded reads the tables once more where two rows name one record: one
// of them is not of its event.
func (a *Auditor) readCrowded(ctx context.Context) error {
	if len(a.crowded) == 0 {
		return nil
	}
	suspect := func(r row) error {
		if !a.crowded[r.at] {
			return nil
		}
		return a.suspect(ctx, r)
	}
	return firstError(
		func() error {
			return a.eachCharge(ctx, func(page []domain.Charge) (err error) {
				for i := range page {
					err = firstError(func() error { return err }, func() error { return suspect(chargeRow(&page[i])) })
				}
				return err
			})
		},
		func() error {
			return a.eachIntent(ctx, func(page []domain.Intent) (err error) {
				for i := range page {
					err = firstError(func() error { return err }, func() error { return suspect(intentRow(&page[i])) })
				}
				return err
			})
		},
		func() error { return a.eachSighting(ctx, func(p domain.Sighting) error { return suspect(rowOf(&p)) }) },
	)
}
