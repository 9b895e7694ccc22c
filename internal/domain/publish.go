package domain

import "context"

// publishOutcomes appends the events of the charges that this transaction makes final.
func (r *ruling) publishOutcomes(ctx context.Context, tx Tx) error {
	if len(r.told) == 0 {
		return nil
	}
	messages := make([]Message, len(r.told))
	for i := range r.told {
		var err error
		if messages[i], err = r.told[i].message(); err != nil {
			return err
		}
	}
	return tx.Publish(ctx, messages)
}

// publishLetters appends the records of the letters that say something new: those
// that were not there before, and those that open again.
func (r *ruling) publishLetters(ctx context.Context, tx Tx) error {
	if !r.policy.PublishLetters || len(r.news) == 0 {
		return nil
	}
	messages := make([]Message, len(r.news))
	for i, l := range r.news {
		messages[i] = letterMessage(l)
	}
	return tx.Publish(ctx, messages)
}
