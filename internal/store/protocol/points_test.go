package protocol_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// points remembers where the flow has come to, and what the book held there.
type points struct {
	world *world
	event uuid.UUID

	mu      sync.Mutex
	reached []domain.Point
	intents map[domain.Point]int
	charges map[domain.Point]int
	posts   map[domain.Point]int
}

func (p *points) Hit(_ context.Context, at domain.Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = append(p.reached, at)
	var intents, charges int
	p.world.scan(`SELECT (SELECT count(*) FROM charge_intent), (SELECT count(*) FROM charge)`, nil, &intents, &charges)
	p.intents[at], p.charges[at], p.posts[at] = intents, charges, p.world.provider.postsOf(p.event)
}

// Whoever stands at a point sees what is committed there, and what is not.
func TestThePointsOfABatchAreWhereTheySayTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.event(1, "10.50")
	p := &points{world: w, event: e.id, intents: map[domain.Point]int{}, charges: map[domain.Point]int{}, posts: map[domain.Point]int{}}
	i := w.instance("one", func(policy *domain.Policy) { policy.Faults = p })
	i.mustBill(e.record)
	require.Equal(t, []domain.Point{
		domain.AfterClaim, domain.AfterIntent, domain.AnswerReceived, domain.BeforeCommit, domain.AfterCommit,
	}, p.reached)
	require.Equal(t, map[domain.Point]int{
		domain.AfterClaim: 0, domain.AfterIntent: 1, domain.AnswerReceived: 1, domain.BeforeCommit: 1, domain.AfterCommit: 0,
	}, p.intents)
	require.Equal(t, map[domain.Point]int{
		domain.AfterClaim: 0, domain.AfterIntent: 0, domain.AnswerReceived: 0, domain.BeforeCommit: 0, domain.AfterCommit: 1,
	}, p.charges)
	require.Equal(t, map[domain.Point]int{
		domain.AfterClaim: 0, domain.AfterIntent: 0, domain.AnswerReceived: 1, domain.BeforeCommit: 1, domain.AfterCommit: 1,
	}, p.posts)
}
