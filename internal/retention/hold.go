package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/billing/internal/domain"
)

// hold is what the brokers say of unread records, asked as seldom as possible in a turn.
type hold struct {
	reader Reader
	cutoff time.Time

	asked  bool
	unread []domain.Unread // of before the cutoff
	err    error           // why that is not known
}

// before returns why what is older than an instant may still be asked for: "" when it may not.
// Everything that is forgotten is older than the cutoff, so that one answer as a rule
// does for all of it.
func (h *hold) before(ctx context.Context, at time.Time) string {
	if !h.asked {
		h.asked = true
		h.unread, h.err = h.ask(ctx, h.cutoff)
	}
	unread, err := h.unread, h.err
	if err == nil && len(unread) > 0 && at.Before(h.cutoff) {
		unread, err = h.ask(ctx, at)
	}
	switch {
	case err != nil:
		return "it is not known whether everything from before its end is consumed: " + err.Error()
	case len(unread) == 0:
		return ""
	}
	u := unread[0]
	why := fmt.Sprintf("group %s has not consumed %d records or more of %s/%d from before its end", u.Group, u.Records, u.Topic, u.Partition)
	if more := len(unread) - 1; more > 0 {
		why += fmt.Sprintf(", nor of %d more partitions", more)
	}
	return why
}

// errNobody is told where nobody is there to ask.
var errNobody = errors.New("there is nobody to ask")

func (h *hold) ask(ctx context.Context, at time.Time) ([]domain.Unread, error) {
	if h.reader == nil {
		return nil, errNobody
	}
	ctx, cancel := context.WithTimeout(ctx, readerTimeout)
	defer cancel()
	return h.reader.UnreadBefore(ctx, at)
}

// reach returns what reaches into a span that is due: "" when nothing does.
func (t *turn) reach(ctx context.Context, span domain.Span) (why string, err error) {
	n, first, err := t.parts.Table.Unfinished(ctx, span, counted)
	switch {
	case err != nil:
		return "", err
	case n == counted:
		return fmt.Sprintf("%d unfinished intents or more, the first of event %s", n, first), nil
	case n > 0:
		return fmt.Sprintf("%d unfinished intents, the first of event %s", n, first), nil
	}
	return t.hold.before(ctx, span.To), nil
}
