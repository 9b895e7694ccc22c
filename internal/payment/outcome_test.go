package payment

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func TestTheTableGivesEveryStatusItsMeaning(t *testing.T) {
	t.Parallel()
	misconfigured := []int{401, 403, 404, 405, 407}
	unclear := []int{408, 409, 425, 429}
	for status := -1; status < 1000; status++ {
		want := meaning{kind: domain.Unknown, maybeSent: true}
		switch {
		case status/100 == 2:
			want = meaning{kind: domain.Captured}
		case status/100 == 3:
			want = meaning{kind: domain.Misconfigured, maybeSent: true}
		case status == 402:
			want = meaning{kind: domain.Declined}
		case status == 422:
			want = meaning{kind: domain.KeyConflict, maybeSent: true}
		case slices.Contains(misconfigured, status):
			want = meaning{kind: domain.Misconfigured}
		case status/100 == 4 && !slices.Contains(unclear, status):
			want = meaning{kind: domain.Rejected}
		}
		got := meaningOf(status)
		require.Equal(t, want.kind, got.kind, status)
		require.Equal(t, want.maybeSent, got.maybeSent, status)
		if got.kind != domain.Unknown {
			require.Equal(t, never, got.repeat, status)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	const sent = true
	answer := func(kind domain.AnswerKind, posts int, maybeSent bool) domain.Answer {
		return domain.Answer{Kind: kind, Posts: posts, MaybeSent: maybeSent}
	}
	unknown, unsent, withheld := answer(domain.Unknown, 1, sent), answer(domain.NotSent, 0, false), answer(domain.Withheld, 0, false)
	cases := map[string]struct {
		known, latest, want domain.Answer
	}{
		"the first answer counts":                           {withheld, unsent, unsent},
		"withheld twice is withheld":                        {withheld, withheld, withheld},
		"not sent after unknown is unknown":                 {unknown, unsent, answer(domain.Unknown, 1, sent)},
		"withheld after unknown is unknown":                 {unknown, withheld, answer(domain.Unknown, 1, sent)},
		"withheld after not sent says nothing new":          {unsent, withheld, unsent},
		"unknown after not sent is unknown":                 {unsent, unknown, answer(domain.Unknown, 1, sent)},
		"not sent twice is not sent":                        {unsent, unsent, unsent},
		"captured after unknown is captured":                {unknown, answer(domain.Captured, 1, false), answer(domain.Captured, 2, sent)},
		"declined after unknown is declined":                {unknown, answer(domain.Declined, 1, false), answer(domain.Declined, 2, sent)},
		"rejected after unknown stays maybe sent":           {unknown, answer(domain.Rejected, 1, false), answer(domain.Rejected, 2, sent)},
		"misconfigured after unknown stays maybe sent":      {unknown, answer(domain.Misconfigured, 1, false), answer(domain.Misconfigured, 2, sent)},
		"a conflict of keys after not sent is maybe sent":   {unsent, answer(domain.KeyConflict, 1, sent), answer(domain.KeyConflict, 1, sent)},
		"misconfigured after not sent is surely uncharged":  {unsent, answer(domain.Misconfigured, 1, false), answer(domain.Misconfigured, 1, false)},
		"withheld after misconfigured keeps what was known": {answer(domain.Misconfigured, 1, sent), withheld, answer(domain.Misconfigured, 1, sent)},
	}
	for name, c := range cases {
		require.Equal(t, c.want, fold(c.known, c.latest), name)
	}
}

// still is a clock that stands.
type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

func TestRoomForAnAttempt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	client, err := New(Config{URL: "http://provider", Timeout: 5 * time.Second}, Tools{Clock: still(now)})
	require.NoError(t, err)
	cases := map[string]struct {
		nth  int
		left time.Duration
		want bool
	}{
		"the first makes do with a moment":          {1, time.Nanosecond, true},
		"the first needs more than nothing":         {1, 0, false},
		"a further one needs a whole timeout":       {2, 5 * time.Second, true},
		"a further one is not started for any less": {2, 5*time.Second - 1, false},
	}
	for name, c := range cases {
		require.Equal(t, c.want, client.hasRoom(c.nth, now.Add(c.left)), name)
	}
}
