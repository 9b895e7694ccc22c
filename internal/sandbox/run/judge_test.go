package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// event returns the id of the n-th made-up event.
func event(n byte) uuid.UUID { return uuid.UUID{6: 0x70, 8: 0x80, 15: n} }

// cleanFacts are those of a run of five records: four events, of which the third was sent twice.
func cleanFacts() *Facts {
	f := &Facts{
		Setup: Setup{Broker: KafkaEmbedded, Instances: 1},
		Sent: Sent{
			Records: 5, Unique: 4, Republished: 1,
			Totals: Totals{"EUR": big.NewInt(3075), "JPY": big.NewInt(100)},
		},
		Topic: Topic{
			Records: 5, Events: map[uuid.UUID]int64{event(1): 1, event(2): 1, event(3): 2, event(4): 1},
			Meanings: map[uuid.UUID]Meaning{
				event(1): meaning(1, "21/2", "EUR"), event(2): meaning(2, "1/4", "EUR"),
				event(3): meaning(3, "20", "EUR"), event(4): meaning(4, "100", "JPY"),
			},
			Conflicting: map[string]uuid.UUID{},
		},
		Book: Book{
			Processed: 4,
			Charges: map[uuid.UUID]Charge{
				event(1): charge(1, "10.5", "EUR"), event(2): charge(2, "0.25", "EUR"),
				event(3): charge(3, "20", "EUR"), event(4): charge(4, "100", "JPY"),
			},
			Counters: Counters{Received: 5, Processed: 4, Republished: 1, Captured: 4},
			Delays:   map[string]int64{"1m": 1},
			Log:      []Logged{{EventID: event(3), Kind: "republished", Source: "o/0@9", First: "o/0@2"}},
		},
		Ledger: paymenttest.Ledger{
			Posts: 4, Keys: 4, Captures: 4, CapturedKeys: 4, CapturedOrders: 4,
			CapturesPerKey: map[int]int64{1: 4}, CapturesPerOrder: map[int]int64{1: 4},
			CapturedMinor: map[string]string{"EUR": "3075", "JPY": "100"},
		},
		Charges: map[uuid.UUID]paymenttest.Charge{
			event(1): taken(1, "10.50", "EUR"), event(2): taken(2, "0.25", "EUR"),
			event(3): taken(3, "20.00", "EUR"), event(4): taken(4, "100", "JPY"),
		},
		Audit:    Audit{Clean: true, Records: 5},
		Running:  1,
		Duration: 1500 * time.Millisecond,
	}
	f.Stats = []Stats{{Counters: f.Book.Counters, Delays: f.Book.Delays}}
	tell(f)
	return f
}

// tell publishes what the book holds.
func tell(f *Facts) {
	f.Outcomes, f.Told = Outcomes{Events: map[uuid.UUID]Outcome{}}, Told{Letters: map[string]string{}}
	for id := range f.Book.Charges {
		c := f.Book.Charges[id]
		o := Outcome{Type: "billing.charge-" + c.Status + ".v1", OrderEvent: id, OrderID: c.OrderID, Amount: c.Amount, Currency: c.Currency}
		if c.Status == "captured" || c.Status == "declined" {
			f.Outcomes.Events[uuid.NewSHA1(id, []byte(o.Type))] = o
		}
	}
	for i := range f.Book.Letters {
		l := &f.Book.Letters[i]
		l.Source = fmt.Sprint("t/0@", i)
		f.Told.Letters[l.Source] = l.Reason
	}
	f.Outcomes.Records, f.Told.Records = int64(len(f.Outcomes.Events)), int64(len(f.Told.Letters))
}

func charge(order int64, amount, code string) Charge {
	r, _ := new(big.Rat).SetString(amount)
	return Charge{OrderID: order, Amount: r, Currency: code, Status: "captured", Attempts: 1}
}

func meaning(order int64, amount, code string) Meaning {
	return Meaning{OrderID: order, CustomerID: 7, Amount: amount, Currency: code, OccurredAt: 1}
}

func taken(order int64, amount, code string) paymenttest.Charge {
	return paymenttest.Charge{Status: "captured", OrderID: order, Amount: amount, Currency: code, Posts: 1, Captures: 1}
}

// failures are the names of the lines that failed.
func failures(r Report) (names []string) {
	for _, line := range r.Lines {
		if line.Verdict == Failed {
			names = append(names, line.Name)
		}
	}
	return names
}

func TestARunInWhichAllAgreeIsClean(t *testing.T) {
	t.Parallel()
	r := Judge(cleanFacts())
	require.Empty(t, failures(r))
	require.True(t, r.Clean)
	require.Equal(t, int64(4), r.Captured)
	require.Equal(t, map[string]Capture{"EUR": {"30.75", "30.75"}, "JPY": {"100", "100"}}, r.CapturedTotal)
	require.InDelta(t, 1.5, r.Seconds, 0)
}

func TestEachCheckSeesWhatItIsThereFor(t *testing.T) {
	t.Parallel()
	edit := func(f *Facts, n byte, change func(*Charge)) {
		c := f.Book.Charges[event(n)]
		change(&c)
		f.Book.Charges[event(n)] = c
	}
	editTaken := func(f *Facts, n byte, change func(*paymenttest.Charge)) {
		c := f.Charges[event(n)]
		change(&c)
		f.Charges[event(n)] = c
	}
	for name, c := range map[string]struct {
		spoil func(*Facts)
		fails []string
	}{
		"a record that did not arrive": {func(f *Facts) { f.Topic.Records = 4 }, []string{"records", "audit"}},
		"a finding of the audit":       {func(f *Facts) { f.Audit.Clean = false }, []string{"audit"}},
		"a record the audit missed":    {func(f *Facts) { f.Audit.Records = 4 }, []string{"audit"}},
		"a record not reached":         {func(f *Facts) { f.Audit.Kinds = map[string]int64{"not_yet_reached": 1} }, []string{"audit"}},
		"a record of somebody else":    {func(f *Facts) { f.Topic.Foreign = 1 }, []string{"records", "recounted"}},
		"an event that was not claimed": {
			func(f *Facts) { f.Book.Processed = 3 }, []string{"unique events", "processed"},
		},
		"an event twice in the plan": {func(f *Facts) { delete(f.Topic.Events, event(4)) }, []string{"unique events", "lost", "recounted"}},
		"a miscounted duplicate":     {func(f *Facts) { f.Sent.Same = 1 }, []string{"duplicates sent"}},
		"a duplicate not seen": {
			func(f *Facts) { f.Book.Counters.Republished, f.Book.Counters.Received = 0, 4 },
			[]string{"duplicates seen", "received", "statistics pages", "delays", "duplicates logged"},
		},
		"a redelivery without a reason": {
			func(f *Facts) { f.Book.Counters.Redelivered, f.Book.Counters.Received = 1, 6 },
			[]string{"duplicates seen", "received", "statistics pages", "delays"},
		},
		"a conflict nobody sent": {
			func(f *Facts) { f.Book.Counters.Conflicting, f.Book.Counters.Republished = 1, 0 },
			[]string{"duplicates seen", "statistics pages", "duplicates logged", "conflicting"},
		},
		"a charge that the provider does not know": {
			func(f *Facts) { delete(f.Charges, event(1)) }, []string{"charged", "recounted"},
		},
		"a charge that billing does not know": {
			func(f *Facts) { delete(f.Book.Charges, event(1)) },
			[]string{"charged", "lost", "counted as ended", "captured EUR", "currencies"},
		},
		"another order at the provider":    {func(f *Facts) { editTaken(f, 2, func(c *paymenttest.Charge) { c.OrderID = 9 }) }, []string{"charged"}},
		"another amount at the provider":   {func(f *Facts) { editTaken(f, 2, func(c *paymenttest.Charge) { c.Amount = "0.26" }) }, []string{"charged"}},
		"another currency at the provider": {func(f *Facts) { editTaken(f, 2, func(c *paymenttest.Charge) { c.Currency = "USD" }) }, []string{"charged"}},
		"a decline that was taken for a capture": {
			func(f *Facts) { editTaken(f, 2, func(c *paymenttest.Charge) { c.Status = "declined" }) }, []string{"charged", "recounted"},
		},
		"a decline that the provider did not give": {
			func(f *Facts) {
				edit(f, 2, func(c *Charge) { c.Status = "declined" })
				f.Book.Counters.Captured, f.Book.Counters.Declined = 3, 1
				f.Stats[0].Counters = f.Book.Counters
			},
			[]string{"charged", "declined", "recounted", "captured EUR"},
		},
		"an invalid record": {
			func(f *Facts) { f.Book.Counters.Invalid, f.Book.Counters.Received = 1, 6 },
			[]string{"invalid", "received", "counted as ended", "statistics pages", "recounted"},
		},
		"a dead letter": {func(f *Facts) {
			f.Book.Letters = []Letter{{EventID: event(1), Reason: "provider_rejected", State: "open"}}
		}, []string{"parked"}},
		"an unfinished charge":    {func(f *Facts) { f.Book.Intents = map[IntentKey]int64{{"unknown", true}: 1} }, []string{"unfinished", "processed", "statistics pages"}},
		"an unclaimed intent":     {func(f *Facts) { f.Book.Intents = map[IntentKey]int64{{"calling", false}: 1} }, []string{"unfinished"}},
		"a charge out of nowhere": {func(f *Facts) { f.Topic.Events[event(9)] = 1; delete(f.Topic.Events, event(1)) }, []string{"lost"}},
		"records not committed":   {func(f *Facts) { f.Lag = 1 }, []string{"lag"}},
		"a counter that lies":     {func(f *Facts) { f.Book.Counters.Captured = 5 }, []string{"processed", "counted as ended", "statistics pages", "recounted"}},
		"a page that lies":        {func(f *Facts) { f.Stats[0].Counters.Captured = 5 }, []string{"statistics pages"}},
		"a page that lies about the delays": {
			func(f *Facts) { f.Stats[0].Delays = map[string]int64{"10m": 1} }, []string{"statistics pages"},
		},
		"a page that lies about the parked": {
			func(f *Facts) { f.Stats[0].Parked = 1 }, []string{"statistics pages"},
		},
		"a page that did not answer": {func(f *Facts) { f.Stats = nil }, []string{"statistics pages"}},
		"a repeated request": {
			func(f *Facts) {
				f.Ledger.Posts, f.Ledger.RepeatedPosts = 5, 1
				editTaken(f, 1, func(c *paymenttest.Charge) { c.Posts = 2 })
				edit(f, 1, func(c *Charge) { c.Attempts = 2 })
			},
			[]string{"POSTs", "repeated POSTs"},
		},
		"a key that is no event":  {func(f *Facts) { f.Strange = 1 }, []string{"POSTs"}},
		"a key charged twice":     {func(f *Facts) { f.Ledger.CapturesPerKey = map[int]int64{1: 3, 2: 1} }, []string{"double charges"}},
		"an order charged twice":  {func(f *Facts) { f.Ledger.CapturesPerOrder = map[int]int64{1: 2, 2: 1} }, []string{"double charges"}},
		"double charges":          {func(f *Facts) { f.Ledger.DoubleCharges = 1 }, []string{"double charges"}},
		"an attempt not counted":  {func(f *Facts) { edit(f, 3, func(c *Charge) { c.Attempts = 0 }) }, []string{"attempts not counted"}},
		"a cent more in the book": {func(f *Facts) { edit(f, 1, func(c *Charge) { c.Amount = big.NewRat(1051, 100) }) }, []string{"charged", "recounted", "captured EUR", "currencies"}},
		"a tenth of a cent":       {func(f *Facts) { edit(f, 1, func(c *Charge) { c.Amount = big.NewRat(10501, 1000) }) }, []string{"charged", "recounted", "captured EUR", "currencies"}},
		"a cent less there":       {func(f *Facts) { f.Ledger.CapturedMinor["EUR"] = "3074" }, []string{"captured EUR"}},
		"a currency only there":   {func(f *Facts) { f.Ledger.CapturedMinor["KWD"] = "1" }, []string{"captured KWD"}},
		"another total ordered":   {func(f *Facts) { f.Sent.Totals["JPY"] = big.NewInt(101) }, []string{"currencies"}},
		"a kill too few":          {func(f *Facts) { f.Setup.Kills = 1 }, []string{"kills"}},
		"a disorderly end":        {func(f *Facts) { f.Disorder = []string{"exit status 1"} }, []string{"ended cleanly"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cleanFacts()
			c.spoil(f)
			tell(f)
			r := Judge(f)
			require.Equal(t, c.fails, failures(r))
			require.False(t, r.Clean)
		})
	}
}

func TestAKillExplainsOneMoreRequestOfWhatItLeftUnfinished(t *testing.T) {
	t.Parallel()
	repeated := func(posts int, kills ...Kill) Report {
		f := cleanFacts()
		f.Kills, f.Setup.Kills = kills, len(kills)
		f.Ledger.Posts, f.Ledger.RepeatedPosts = 3+int64(posts), int64(posts)-1
		c, mine := f.Charges[event(1)], f.Book.Charges[event(1)]
		c.Posts, mine.Attempts = posts, posts
		f.Charges[event(1)], f.Book.Charges[event(1)] = c, mine
		return Judge(f)
	}
	with := Kill{Unfinished: map[uuid.UUID]string{event(1): "calling"}}
	without := Kill{Unfinished: map[uuid.UUID]string{event(2): "calling", event(3): "calling"}}

	require.Empty(t, failures(repeated(2, with)))
	require.Empty(t, failures(repeated(3, with, with)))
	require.Equal(t, []string{"repeated POSTs"}, failures(repeated(2, without)))
	require.Equal(t, []string{"repeated POSTs"}, failures(repeated(3, with, without)))
	require.Equal(t, int64(1), repeated(3, with, without).UnexplainedPosts)
}

func TestWhatAKillMayBringIsNoFinding(t *testing.T) {
	t.Parallel()
	f := cleanFacts()
	f.Kills, f.Setup.Kills = []Kill{{}}, 1
	f.Book.Counters.Redelivered, f.Book.Counters.Republished, f.Book.Counters.Received = 2, 2, 8
	f.Book.Delays = map[string]int64{"1m": 3, "forgotten": 1}
	f.Stats[0].Counters, f.Stats[0].Delays = f.Book.Counters, f.Book.Delays
	require.Empty(t, failures(Judge(f)))

	f.Book.Counters.Redelivered, f.Book.Counters.Republished, f.Book.Counters.Received = 0, 0, 4
	f.Book.Delays, f.Book.Log = nil, nil
	f.Stats[0].Counters, f.Stats[0].Delays = f.Book.Counters, nil
	require.Equal(t, []string{"duplicates seen", "received"}, failures(Judge(f)))
}

func TestAFailingProviderMayRepeatAndPark(t *testing.T) {
	t.Parallel()
	f := cleanFacts()
	f.Setup.Faulty = true
	f.Ledger.Posts, f.Ledger.RepeatedPosts = 9, 5
	f.Book.Letters = []Letter{{EventID: event(1), Reason: "retries_exhausted", State: "open"}}
	tell(f)
	r := Judge(f)
	require.Empty(t, failures(r))

	f.Ledger.DoubleCharges = 1
	require.Equal(t, []string{"double charges"}, failures(Judge(f)))
}

func TestTheTableShowsEveryLineAndTheOutcome(t *testing.T) {
	t.Parallel()
	f := cleanFacts()
	f.Lag = 12345
	r := Judge(f)
	var text bytes.Buffer
	r.WriteTable(&text, 0)
	for _, line := range r.Lines {
		require.Contains(t, text.String(), line.Name)
	}
	require.Regexp(t, `lag +│ +12,345 │ ✗ │`, text.String())
	require.Contains(t, text.String(), "NOT CLEAN: 1 of ")
	require.Contains(t, r.Summary(), "NOT CLEAN")
}

func TestATableTooWideForTheTerminalTellsWhatFailedBelow(t *testing.T) {
	t.Parallel()
	f := cleanFacts()
	f.Lag = 12345
	r := Judge(f)
	var out bytes.Buffer
	r.WriteTable(&out, 80)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80+1)
	}
	require.Regexp(t, `lag +│ +12,345 │ ✗ │\n`, out.String())
	require.Contains(t, out.String(), "✗ lag: records of the topic below no committed offset\n")
	require.NotContains(t, out.String(), "say what the tables say")
}

func TestTheReportAsJSONHasTheFiguresByName(t *testing.T) {
	t.Parallel()
	r := Judge(cleanFacts())
	r.fail("done", "3 intents waiting")
	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text))
	var got struct {
		Clean  bool                         `json:"clean"`
		Unique int64                        `json:"unique"`
		Posts  int64                        `json:"posts"`
		Totals map[string]map[string]string `json:"captured_total"`
	}
	require.NoError(t, json.Unmarshal(text.Bytes(), &got))
	require.False(t, got.Clean)
	require.Equal(t, int64(4), got.Unique)
	require.Equal(t, int64(4), got.Posts)
	require.Equal(t, map[string]string{"charge": "30.75", "ledger": "30.75"}, got.Totals["EUR"])
	require.Contains(t, text.String(), "3 intents waiting")
}

func TestNumbersAreGroupedByThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -12345678: "-12,345,678"} {
		require.Equal(t, want, number(n))
	}
}

func TestWhatRemainsIsNamed(t *testing.T) {
	t.Parallel()
	require.True(t, remainder{}.none())
	r := remainder{lag: 1200, unfinished: map[IntentKey]int64{{"waiting", false}: 3}, inProgress: 2, unpublished: true}
	require.False(t, r.none())
	require.Equal(t, "1,200 records not committed, 3 intents waiting (not claimed), 2 requests at the provider, messages not published", r.String())
	require.NotContains(t, remainder{lag: 1}.String(), "intents")
}
