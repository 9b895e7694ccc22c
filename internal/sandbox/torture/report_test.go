package torture

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/run"
)

func at(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }

func window(what string, from, to int) *Window {
	return &Window{What: what, From: at(from), To: at(to)}
}

func TestARepeatedPostNeedsAnIntentAndAReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repeat  Repeat
		windows []*Window
		clean   bool
	}{
		"no answer before, called now":        {Repeat{Owned: true}, nil, true},
		"no answer before, nobody calls":      {Repeat{}, nil, false},
		"nobody could say who calls":          {Repeat{Unknown: true}, nil, true},
		"answered before":                     {Repeat{Owned: true, Told: true}, nil, false},
		"answered, and killed in between":     {Repeat{Owned: true, Told: true}, []*Window{window("kill", 15, 15)}, true},
		"answered, and killed before":         {Repeat{Owned: true, Told: true}, []*Window{window("kill", 5, 9)}, false},
		"answered, and killed after":          {Repeat{Owned: true, Told: true}, []*Window{window("kill", 21, 22)}, false},
		"nobody calls, but one was stopped":   {Repeat{}, []*Window{window("stop", 5, 19)}, true},
		"nobody calls, and one was killed":    {Repeat{}, []*Window{window("kill", 5, 19)}, false},
		"answered, and a cut that lasts":      {Repeat{Owned: true, Told: true}, []*Window{{What: "cut", From: at(12)}}, true},
		"answered, and a cut that begins now": {Repeat{Owned: true, Told: true}, []*Window{{What: "cut", From: at(20)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.repeat.Before, c.repeat.At = at(10), at(20)
			var r Report
			r.judgeRepeats([]Repeat{c.repeat}, c.windows)
			require.Equal(t, c.clean, r.Checks[0].Verdict == run.OK, r.Checks[0].Note)
		})
	}
}

func TestAProviderThatIgnoresKeysIsAskedOnceForEachCharge(t *testing.T) {
	t.Parallel()
	facts := func(posts int, statuses ...string) *run.Facts {
		f := &run.Facts{Charges: map[uuid.UUID]paymenttest.Charge{}, Book: run.Book{Charges: map[uuid.UUID]run.Charge{}}}
		for i, s := range statuses {
			id := uuid.UUID{byte(i + 1)}
			f.Book.Charges[id] = run.Charge{Status: s}
			if s != "duplicate_order" {
				f.Charges[id] = paymenttest.Charge{Posts: posts}
			}
		}
		return f
	}
	for name, c := range map[string]struct {
		facts *run.Facts
		clean bool
	}{
		"once each": {facts(1, "captured", "declined", "duplicate_order"), true},
		"twice":     {facts(2, "captured"), false},
		"asked and not in charge": {func() *run.Facts {
			f := facts(1, "captured")
			f.Charges[uuid.UUID{9}] = paymenttest.Charge{Posts: 1}
			return f
		}(), false},
		"in charge and not asked": {func() *run.Facts { f := facts(1, "captured"); clear(f.Charges); return f }(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Report
			r.judgeOnce(c.facts)
			require.Equal(t, c.clean, r.Checks[0].Verdict == run.OK, r.Checks[0].Note)
		})
	}
}

func TestFaultsAreCountedByKindAndPoint(t *testing.T) {
	t.Parallel()
	hits := []Hit{
		{Kind: "kill", Point: "b", InFlight: 2},
		{Kind: "kill", Point: "a"},
		{Kind: "kill", Point: "b", InFlight: 1},
		{Kind: "cut", Missed: true, InFlight: 3},
	}
	require.Equal(t, []tally{
		{kind: "cut", missed: 1}, {kind: "kill", point: "a", idle: 1}, {kind: "kill", point: "b", inFlight: 2},
	}, tallies(hits))
	line, clean := Verdict(7, []Report{{Clean: true, Hits: hits}, {Hits: hits}})
	require.False(t, clean)
	require.Equal(t, "torture: NOT CLEAN: seed 7, 6 faults, 4 of them hit charges in flight", line)
	line, clean = Verdict(7, []Report{{Clean: true, Hits: hits}})
	require.True(t, clean)
	require.Equal(t, "torture: CLEAN: seed 7, 3 faults, 2 of them hit charges in flight", line)
	_, clean = Verdict(7, nil)
	require.False(t, clean, "nothing was judged")
}
