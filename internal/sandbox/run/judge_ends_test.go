package run

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// endFacts are those of a run in which every event came to another end: captured, declined, a duplicate of its order, and discarded.
func endFacts() *Facts {
	f := cleanFacts()
	for n, status := range map[byte]string{2: "declined", 3: "duplicate_order", 4: "discarded"} {
		c := f.Book.Charges[event(n)]
		c.Status = status
		f.Book.Charges[event(n)] = c
	}
	theirs := f.Charges[event(2)]
	theirs.Status, theirs.Captures = "declined", 0
	f.Charges[event(2)] = theirs
	delete(f.Charges, event(3))
	delete(f.Charges, event(4))
	f.Setup.Faulty = true
	f.Ledger.Declined = 1
	f.Ledger.CapturedMinor = map[string]string{"EUR": "1050"}
	c := &f.Book.Counters
	c.Captured, c.Declined, c.DuplicateOrder, c.Discard = 1, 1, 1, 1
	f.Stats[0].Counters = *c
	tell(f)
	return f
}

func lineOf(r Report, name string) Line {
	for _, line := range r.Lines {
		if line.Name == name {
			return line
		}
	}
	return Line{}
}

func TestEveryEndCounts(t *testing.T) {
	t.Parallel()
	r := Judge(endFacts())
	require.Empty(t, failures(r))
	require.Equal(t, []int64{1, 1, 1, 1}, []int64{r.Captured, r.Declined, r.DuplicateOrder, r.Discarded})
	require.Equal(t, "2", lineOf(r, "order charged already").Value)
	require.Equal(t, "= 4 ended + 0 unfinished + 0 parked", lineOf(r, "processed").Note)
	require.Empty(t, lineOf(Judge(cleanFacts()), "order charged already").Name, "not shown where there is none")
}

func TestEachEndIsShownAlone(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"duplicate_order", "discarded"} {
		f := cleanFacts()
		c := f.Book.Charges[event(1)]
		c.Status = status
		f.Book.Charges[event(1)] = c
		require.Equal(t, "1", lineOf(Judge(f), "order charged already").Value, status)
	}
}

func TestWhatIsNotFinishedIsCountedOnBothSidesOfTheClaim(t *testing.T) {
	t.Parallel()
	f := endFacts()
	f.Book.Intents = map[IntentKey]int64{
		{"calling", true}: 2, {"unknown", true}: 1, {"waiting", false}: 4, {"parked", true}: 8, {"held", true}: 16, {"held", false}: 32,
	}
	f.Book.Counters.Processed += 3 + 24
	r := Judge(f)
	require.Equal(t, int64(7), r.Unfinished)
	require.Equal(t, "4 of them not claimed", lineOf(r, "unfinished").Note)
	require.Equal(t, "= 4 ended + 3 unfinished + 24 parked", lineOf(r, "processed").Note)
	require.Equal(t, "= 31 processed + 1 duplicates + 0 invalid", lineOf(r, "received").Note)
}

func TestADeclineThatBillingTookForAnotherEndIsFound(t *testing.T) {
	t.Parallel()
	f := endFacts()
	c := f.Book.Charges[event(2)]
	c.Status = "discarded"
	f.Book.Charges[event(2)] = c
	require.Contains(t, failures(Judge(f)), "charged")
	require.Contains(t, lineOf(Judge(f), "charged").Note, `declined there, "discarded" here`)

	delete(f.Book.Charges, event(2)) // not here yet: that is unfinished or lost, and no other story
	require.NotContains(t, failures(Judge(f)), "charged")
}

func TestReasonsOfDeadLettersAreListed(t *testing.T) {
	t.Parallel()
	require.Empty(t, reasons(nil))
	require.Equal(t, ": 1 order_conflict, 2 provider_rejected",
		reasons([]Letter{{Reason: "provider_rejected"}, {Reason: "order_conflict"}, {Reason: "provider_rejected"}}))
}

func TestAKeyThatIsNoEventIsFoundAfterAKillToo(t *testing.T) {
	t.Parallel()
	f := cleanFacts()
	f.Kills, f.Setup.Kills, f.Strange = []Kill{{}}, 1, 1
	require.Equal(t, []string{"POSTs"}, failures(Judge(f)))
}

func TestKeysAtTheProviderAreEventIDsInLowerCase(t *testing.T) {
	t.Parallel()
	p, err := paymenttest.New(paymenttest.Options{})
	require.NoError(t, err)
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	for order, key := range []string{id, strings.ToUpper(id), "order-17"} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/charges",
			strings.NewReader(`{"orderId":`+string(rune('1'+order))+`,"amount":10.50,"currency":"EUR"}`))
		request.Header.Set("Idempotency-Key", key)
		request.Header.Set("Content-Type", "application/json")
		p.ServeHTTP(httptest.NewRecorder(), request)
	}
	charges, strange := ledgerCharges(p)
	require.Equal(t, 2, strange)
	require.Len(t, charges, 1)
	require.Equal(t, int64(1), charges[uuid.MustParse(id)].OrderID)
}
