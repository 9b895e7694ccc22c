package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// timeline asks for the story of event 1, and returns its timeline.
func (b *bundle) timeline(t *testing.T) []any {
	t.Helper()
	return as[[]any](t, b.show(t, "/api/v1/events/"+theID(1).String())["timeline"])
}

// after returns how the instant that many minutes after noon is written.
func after(minutes int) (time.Time, string) {
	at := noon.Add(time.Duration(minutes) * time.Minute)
	return at, at.Format(time.RFC3339)
}

func TestTheTimelineOfAnEventTellsWhatGoesWithEachMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	charge := theCharge(t, 1, func(c *domain.Charge) {
		c.Status, c.ProviderChargeID, c.DeclineCode, c.ClaimsOrder, c.Attempts = domain.ChargeDeclined, "", "insufficient_funds", false, 4
		c.IntendedAt, c.FirstAttemptAt = noon, noon
		c.SettledAt, _ = after(20)
	})
	processed := noon
	first := domain.Coordinates{Topic: "orders", Partition: 2, Offset: 1}
	b.archive.stories[theID(1)] = domain.EventStory{
		EventID: theID(1), Sighting: &domain.Sighting{Source: first}, ProcessedAt: &processed, Charge: &charge,
		Letters: []domain.Letter{theLetter(5, func(l *domain.Letter) {
			l.Record.Coordinates, l.Reason, l.Detail, l.State = first, domain.ReasonProviderRejected, "HTTP 400", domain.LetterResolved
			l.At, _ = after(1)
			l.ChangedAt, _ = after(20)
		})},
		Duplicates: []domain.Duplicate{theDuplicate(1, func(d *domain.Duplicate) { d.SeenAt, _ = after(2) })},
		LogBegins:  noon.Add(time.Minute), LogCut: true,
	}
	replayed, _ := after(10)
	b.archive.actions = []domain.Action{
		{LetterID: 5, Kind: domain.ActionReplay, By: "ann", Why: "mended", Result: domain.ResultSentRound, At: replayed},
	}
	at := func(minutes int) string {
		_, text := after(minutes)
		return text
	}
	source := map[string]any{"topic": "orders", "partition": 2., "offset": 1.}
	require.Equal(t, []any{
		map[string]any{"at": at(0), "what": "seen", "source": source},
		map[string]any{"at": at(0), "what": "claimed", "group": testGroup},
		map[string]any{"at": at(0), "what": "intent_committed"},
		map[string]any{"at": at(0), "what": "first_attempt"},
		map[string]any{"at": at(0), "what": "attempts", "attempts": 4.},
		map[string]any{"at": at(1), "what": "parked", "letter_id": 5., "reason": "provider_rejected", "detail": "HTTP 400", "source": source},
		map[string]any{"at": at(2), "what": "duplicate", "kind": "republished", "source": map[string]any{
			"topic": "orders", "partition": 3., "offset": 1001.,
		}},
		map[string]any{"at": at(10), "what": "replayed", "letter_id": 5., "by": "ann", "why": "mended", "result": "sent_round"},
		map[string]any{"at": at(20), "what": "outcome", "status": "declined", "attempts": 4., "decline_code": "insufficient_funds"},
		map[string]any{"at": at(20), "what": "resolved", "letter_id": 5.},
	}, b.timeline(t))
	shown := b.show(t, "/api/v1/events/"+theID(1).String())
	require.Equal(t, map[string]any{"more": false, "since": at(1), "may_lack": true}, shown["duplicate_log"])
	require.Equal(t, []any{map[string]any{
		"id": 1., "event_id": theID(1).String(), "kind": "republished", "seen_at": at(2), "first_seen_at": at(0), "first": source,
		"source": map[string]any{"topic": "orders", "partition": 3., "offset": 1001.},
	}}, shown["duplicates"])
}

func TestTheTimelineOfAnUnfinishedChargeLooksAhead(t *testing.T) {
	t.Parallel()
	until, untilText := after(1)
	_, now := after(0)
	for name, test := range map[string]struct {
		intent domain.Intent
		want   map[string]any // the last moment
	}{
		"under a lease": {
			domain.Intent{State: domain.Calling, Owner: "billing-1", LeaseUntil: until, DueAt: until},
			map[string]any{"at": untilText, "what": "leased", "owner": "billing-1", "until": untilText},
		},
		"without an answer": {
			domain.Intent{State: domain.UnknownOutcome, DueAt: until},
			map[string]any{"at": untilText, "what": "due", "state": "unknown"},
		},
		"answered, and not claimed": {
			domain.Intent{State: domain.Answered, DueAt: until, Answer: &domain.Answer{Kind: domain.Captured, ProviderChargeID: "ch_1"}},
			map[string]any{"at": untilText, "what": "answered", "answer": "captured", "provider_charge_id": "ch_1"},
		},
		"waiting for an operator": {
			domain.Intent{State: domain.Held, DueAt: until, LastError: "HTTP 400", Attempts: 1},
			map[string]any{"at": now, "what": "attempts", "attempts": 1., "last_error": "HTTP 400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			test.intent.CreatedAt, test.intent.OrderID = noon, 1
			b.archive.stories[theID(1)] = domain.EventStory{EventID: theID(1), Intent: &test.intent}
			got := b.timeline(t)
			require.Equal(t, map[string]any{"at": now, "what": "intent_committed"}, got[0])
			require.Equal(t, test.want, got[len(got)-1])
		})
	}
}

func TestTheTimelineOfAnEventThatOnlyTheLogKnows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.stories[theID(1)] = domain.EventStory{EventID: theID(1), Duplicates: []domain.Duplicate{theDuplicate(1)}}
	got := b.timeline(t)
	require.Len(t, got, 2)
	_, now := after(0)
	require.Equal(t, map[string]any{
		"at": now, "what": "seen", "source": map[string]any{"topic": "orders", "partition": 2., "offset": 1.},
	}, got[0])
	require.Equal(t, "duplicate", as[map[string]any](t, got[1])["what"])
}
