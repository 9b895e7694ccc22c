package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/kafka"
)

// factsEvery is how often the brokers are asked for the topic's settings, at most:
// they rarely change.
const factsEvery = 5 * time.Minute

// topicFacts is what the brokers say about the topic, and when they said it.
type topicFacts struct {
	clock domain.Clock
	ask   func(context.Context) (time.Duration, error)

	mu        sync.Mutex
	at        time.Time // zero before the first answer
	retention time.Duration
}

// look returns the topic's retention, of now or a while ago; false while nobody has said.
func (f *topicFacts) look(ctx context.Context) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if f.at.IsZero() || now.Sub(f.at) >= factsEvery {
		if retention, err := f.ask(ctx); err == nil {
			f.retention, f.at = retention, now
		}
	}
	return f.retention, !f.at.IsZero()
}

// checkTopic warns of a topic that keeps records for longer than deduplication
// remembers them: offsets that are reset so far back bring events of which nobody
// can tell whether they were dealt with, and which are then parked. That is a fact of
// the brokers and no reason not to work; nor is it that they do not say.
func (a *App) checkTopic(ctx context.Context) admin.Verdict {
	retention, known := a.facts.look(ctx)
	remembered := a.settings.Flow.DedupRetention
	switch {
	case known && retention == kafka.Forever:
		return admin.Verdict{Status: admin.StatusWarn, Reason: fmt.Sprintf("keeps records for ever, DEDUP_RETENTION is %s", remembered)}
	case known && retention > remembered:
		return admin.Verdict{Status: admin.StatusWarn, Reason: fmt.Sprintf("keeps records for %s, longer than DEDUP_RETENTION (%s)", retention, remembered)}
	}
	return admin.Verdict{Status: admin.StatusOK}
}
