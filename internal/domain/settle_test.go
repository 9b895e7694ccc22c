package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var (
	noon     = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	bounds   = Policy{Group: "g", Owner: "me", Lease: time.Minute, QuickAttempts: 3, RetryHorizon: 20 * time.Hour, KeyTTL: 24 * time.Hour}
	tenEuros = Money{minor: 1000, currency: Currency{code: "EUR", exponent: 2}}
)

// leased returns an event and its intent under a lease of three attempts, taken
// half a minute ago, and not yet claimed.
func leased() (*Event, *Intent) {
	e := &Event{
		ID: uuid.Must(uuid.NewV7()), OrderID: 42, CustomerID: 7, Total: tenEuros,
		OccurredAt: noon.Add(-time.Hour),
	}
	r := &Record{Coordinates: Coordinates{Topic: "t", Partition: 3, Offset: 9}, Value: []byte("v")}
	in := newIntent(e, r, "g", noon.Add(-30*time.Second))
	in.lease(&bounds, noon.Add(-30*time.Second))
	in.read()
	return e, &in
}

// row is a line of the table of decisions: which situations it covers ("" covers
// all, a list covers each), and what is decided in them. The first line that
// covers a situation holds.
type row struct {
	answer  string // AnswerKind.String()
	lease   string // ours, theirs: a lease of another token; none: there is no intent
	claimed string // claimed, unclaimed
	sent    string // sent: an earlier attempt may have been; unsent
	event   string // free, captured, declined: the event's own final charge
	order   string // free, taken: by another event's charge
	age     string // young, old: the retry horizon has passed

	want decision
}

// decision is what becomes of a situation.
type decision struct {
	intent     string       // the state it is written in; gone: deleted; kept: not written
	due        string       // now, later; "" where no time will finish it
	charge     ChargeStatus // the final charge that is written
	letter     Reason       // the dead letter that is written
	stale      bool         // the answer came too late to count
	unexpected bool         // the alarm
}

func (r *row) covers(situation []string) bool {
	for i, list := range []string{r.answer, r.lease, r.claimed, r.sent, r.event, r.order, r.age} {
		if list != "" && !slices.Contains(strings.Fields(list), situation[i]) {
			return false
		}
	}
	return true
}

// decisions is the heart of the protocol: what an answer makes of an event.
func decisions() []row {
	const definite, money = "declined rejected key_conflict", "captured"
	reconcile := func(d decision) decision {
		d.letter, d.unexpected = ReasonNeedsReconciliation, true
		return d
	}
	return []row{
		// Money that was taken is never forgotten, whoever's lease it was.
		{answer: money, lease: "none", event: "captured", want: decision{intent: "kept"}},
		{answer: money, event: "captured", want: decision{intent: "gone"}},
		{answer: money, lease: "none", want: reconcile(decision{intent: "kept"})},
		{answer: money, event: "declined", want: reconcile(decision{intent: "gone"})},
		{answer: money, order: "taken", want: reconcile(decision{intent: "parked"})},
		{answer: money, claimed: "unclaimed", want: decision{intent: "answered", due: "now"}},
		{answer: money, want: decision{intent: "gone", charge: ChargeCaptured}},

		// Everything else counts only under its own lease, and only for what is open.
		{lease: "none theirs", want: decision{intent: "kept", stale: true}},
		{event: "captured declined", want: decision{intent: "gone"}},

		// The provider has decided.
		{answer: definite, claimed: "unclaimed", want: decision{intent: "answered", due: "now"}},
		{answer: "declined", want: decision{intent: "gone", charge: ChargeDeclined}},
		{answer: "rejected", sent: "unsent", want: decision{intent: "held", letter: ReasonProviderRejected}},
		{answer: "rejected", want: decision{intent: "parked", letter: ReasonProviderRejected}},
		{answer: "key_conflict", want: decision{intent: "parked", letter: ReasonIdempotencyConflict}},

		// Nothing was decided. What stopped because of us is no attempt and parks nothing.
		{answer: "withheld", claimed: "unclaimed", sent: "unsent", want: decision{intent: "gone"}},
		{answer: "withheld misconfigured", sent: "unsent", want: decision{intent: "waiting", due: "now"}},
		{answer: "withheld misconfigured", want: decision{intent: "unknown", due: "now"}},
		{answer: "not_sent", claimed: "claimed", age: "old", sent: "unsent", want: decision{intent: "held", letter: ReasonRetriesExhausted}},
		{claimed: "claimed", age: "old", want: decision{intent: "parked", letter: ReasonRetriesExhausted}},
		{answer: "not_sent", sent: "unsent", want: decision{intent: "waiting", due: "later"}},
		{answer: "not_sent unknown", want: decision{intent: "unknown", due: "later"}},
	}
}

func answerNames() (names []string) {
	for kind := Unknown; kind <= Misconfigured; kind++ {
		names = append(names, kind.String())
	}
	return names
}

// situations are all there are.
func situations() (all [][]string) {
	all = [][]string{{}}
	for _, values := range [][]string{
		answerNames(),
		{"ours", "theirs", "none"},
		{"claimed", "unclaimed"},
		{"sent", "unsent"},
		{"free", "captured", "declined"},
		{"free", "taken"},
		{"young", "old"},
	} {
		var longer [][]string
		for _, s := range all {
			for _, v := range values {
				longer = append(longer, append(slices.Clone(s), v))
			}
		}
		all = longer
	}
	return all
}

func TestEveryAnswerInEverySituationIsDecidedByTheTable(t *testing.T) {
	t.Parallel()
	rows := decisions()
	used := make([]bool, len(rows))
	all := situations()
	require.Len(t, all, 8*3*2*2*3*2*2)
	for _, s := range all {
		i := slices.IndexFunc(rows, func(r row) bool { return r.covers(s) })
		require.NotEqual(t, -1, i, "%v is decided", s)
		used[i] = true
		require.Equal(t, rows[i].want, decide(t, s), "%v, line %d", s, i)
	}
	for i, u := range used {
		require.True(t, u, "line %d of the table decides something", i)
	}
}

// decide settles one situation and says what was written.
func decide(t *testing.T, names []string) decision {
	t.Helper()
	kind, err := ParseAnswerKind(names[0])
	require.NoError(t, err)
	e, in := leased()
	record := in.Record
	s := situation{event: e, intent: in, record: &record, claims: names[2] == "claimed"}
	in.Claimed, in.MaybeSent = s.claims, names[3] == "sent"
	if names[6] == "old" {
		in.CreatedAt, in.FirstAttemptAt = noon.Add(-21*time.Hour), noon.Add(-21*time.Hour)
	}
	ours := in.Token
	switch names[1] {
	case "theirs":
		in.Token = uuid.New()
	case "none":
		s.intent = nil
	}
	if names[4] != "free" {
		s.charge = &Charge{EventID: e.ID, OrderID: e.OrderID, Status: ChargeStatus(names[4]), Source: Coordinates{Topic: "charged"}}
	}
	if names[5] == "taken" {
		s.order = &Charge{EventID: uuid.New(), OrderID: e.OrderID, Status: ChargeCaptured, Amount: e.Total}
	}
	r := newRuling(&bounds, noon)
	answer := Answer{Kind: kind, Posts: 1, Detail: "why"}
	r.settle(s, ours, answer)
	return decided(t, r, e, record)
}

// decided reads the decision off a ruling, and checks the form of what it writes.
func decided(t *testing.T, r *ruling, e *Event, record Record) (d decision) {
	t.Helper()
	require.Empty(t, r.writes.Insert, "the intent has a row")
	require.LessOrEqual(t, len(r.writes.Update)+len(r.writes.Delete), 1)
	d.intent = "kept"
	for _, in := range r.writes.Delete {
		require.Equal(t, e.ID, in.EventID)
		d.intent = "gone"
	}
	for _, in := range r.writes.Update {
		d.intent = string(in.State)
		requirePossible(t, &in)
		switch {
		case in.State.Dead():
		case in.DueAt.Equal(noon):
			d.due = "now"
		case in.DueAt.After(noon):
			d.due = "later"
		default:
			d.due = fmt.Sprint("in the past: ", in.DueAt)
		}
	}
	stats := Stats{}
	for _, c := range r.writes.Charges {
		d.charge = c.Status
		require.Equal(t, e.ID, c.EventID)
		require.Equal(t, c.Status == ChargeCaptured, c.ClaimsOrder)
		var n Counters
		n.final(c.Status)
		stats[statKey("g", record.Coordinates, noon)] = n
	}
	require.Equal(t, stats, r.stats, "a charge is counted once, at its record")
	for _, l := range r.letters {
		d.letter = l.Reason
		l.Detail = ""
		require.Equal(t, Letter{
			Record: record, Reason: d.letter, State: LetterOpen, EventID: e.ID, OrderID: e.OrderID, Group: "g", At: noon, Reopens: true,
		}, l)
	}
	require.LessOrEqual(t, len(r.letters), 1)
	require.Empty(t, r.resolve, "no letter was open")
	d.stale, d.unexpected = r.stale == 1, slices.Equal(r.unexpected, []uuid.UUID{e.ID})
	return d
}

// requirePossible checks an intent by the rules that the schema checks it by.
func requirePossible(t *testing.T, in *Intent) {
	t.Helper()
	require.Equal(t, in.State == Calling, !in.LeaseUntil.IsZero())
	require.True(t, in.State != Calling || in.DueAt.Equal(in.LeaseUntil))
	require.True(t, in.State != Answered || in.Answer != nil)
	require.True(t, in.State != Waiting && in.State != Held || !in.MaybeSent, "%s says surely not sent", in.State)
	require.True(t, in.State != UnknownOutcome && in.State != Parked || in.MaybeSent, "%s says maybe sent", in.State)
	require.True(t, !in.MaybeSent || !in.FirstAttemptAt.IsZero(), "what may be sent has a first attempt")
	require.GreaterOrEqual(t, in.Attempts, 0)
}
