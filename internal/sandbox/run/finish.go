package run

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	// finishPoll is the pause between two looks whether everything is done.
	finishPoll = 100 * time.Millisecond
	// finishLooks is how often in a row it must look done: a retry may be between two states.
	finishLooks = 2
)

// remainder is what keeps a run from being done.
type remainder struct {
	lag         int64
	unfinished  map[IntentKey]int64
	inProgress  int64
	unpublished bool
}

func (r remainder) none() bool {
	return r.lag == 0 && len(r.unfinished) == 0 && r.inProgress == 0 && !r.unpublished
}

func (r remainder) String() string {
	var parts []string
	if r.lag > 0 {
		parts = append(parts, number(r.lag)+" records not committed")
	}
	for k, n := range r.unfinished {
		claim := "claimed"
		if !k.Claimed {
			claim = "not claimed"
		}
		parts = append(parts, fmt.Sprintf("%s intents %s (%s)", number(n), k.State, claim))
	}
	if r.inProgress > 0 {
		parts = append(parts, number(r.inProgress)+" requests at the provider")
	}
	if r.unpublished {
		parts = append(parts, "messages not published")
	}
	return strings.Join(parts, ", ")
}

// remains looks at the group, the intents and the provider.
func (p *parts) remains(ctx context.Context) (remainder, error) {
	r := remainder{inProgress: p.provider.Ledger().InProgress, unfinished: make(map[IntentKey]int64)}
	intents, err := p.books.intents(ctx)
	if err != nil {
		return r, err
	}
	for k, n := range intents {
		if k.State != "parked" && k.State != "held" {
			r.unfinished[k] = n
		}
	}
	if r.unpublished, err = p.books.unpublished(ctx); err != nil {
		return r, err
	}
	r.lag, err = p.watcher.lag(ctx)
	return r, err
}

// awaitDone waits until nothing remains. When ctx ends first it returns what does;
// only a look that is refused is an error.
func (p *parts) awaitDone(ctx context.Context) (missing string, err error) {
	last := remainder{}
	for looks := 0; looks < finishLooks; {
		now, err := p.remains(ctx)
		switch {
		case ctx.Err() != nil: // the question was broken off
		case err != nil:
			return "", err
		case now.none():
			looks++
		default:
			looks, last = 0, now
		}
		if ended := sleep(ctx, finishPoll); ended != nil {
			missing = fmt.Sprintf("%v: %s", ended, last)
			break
		}
	}
	return missing, nil
}
