package paymenttest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/billing/internal/payment/paymenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type testBundle struct {
	*paymenttest.Server
	t    *testing.T
	http *http.Client
}

func setup(t *testing.T, faults string, options paymenttest.Options) *testBundle {
	t.Helper()
	var err error
	options.Faults, err = paymenttest.ParseFaults(faults)
	require.NoError(t, err)
	server, err := paymenttest.Listen(t.Context(), "127.0.0.1:0", options)
	require.NoError(t, err)
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		Timeout:   10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, server.Close())
	})
	return &testBundle{Server: server, t: t, http: client}
}

// send returns the response with its body read, or the error on the way.
func (b *testBundle) send(method, path, key, body string) (*http.Response, string, error) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.URL()+path, strings.NewReader(body))
	require.NoError(b.t, err)
	request.GetBody = nil // else net/http sends again by itself
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := b.http.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, string(text), err
}

func (b *testBundle) post(key, body string) (status int, text string) {
	b.t.Helper()
	response, text, err := b.send(http.MethodPost, "/v1/charges", key, body)
	require.NoError(b.t, err)
	return response.StatusCode, text
}

func order(id int) string { return fmt.Sprintf(`{"orderId":%d,"amount":10.50,"currency":"EUR"}`, id) }

func TestKeys(t *testing.T) {
	t.Parallel()

	t.Run("the first answer is given again for the same key and payload", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "", paymenttest.Options{})
		status, first := b.post("k", order(1))
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"id":"ch_0000000000000001","status":"captured","orderId":1,"amount":10.50,"currency":"EUR"}`, first)
		_, again := b.post("k", `{"currency":"EUR", "amount":10.5, "orderId":1}`)
		require.Equal(t, first, again)

		sums := b.Ledger()
		require.EqualValues(t, 2, sums.Posts)
		require.EqualValues(t, 1, sums.RepeatedPosts)
		require.EqualValues(t, 1, sums.Replayed)
		require.EqualValues(t, 1, sums.Captures)
		require.Zero(t, sums.DoubleCharges)
		require.Equal(t, map[string]string{"EUR": "1050"}, sums.CapturedMinor)
		require.Equal(t, map[int]int64{2: 1}, sums.PostsPerKey)
	})

	t.Run("another payload is refused, also after an answer that charged nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "503=next1", paymenttest.Options{})
		status, _ := b.post("k", order(1))
		require.Equal(t, 503, status)
		status, _ = b.post("k", order(2))
		require.Equal(t, 422, status)
		status, _ = b.post("k", order(1))
		require.Equal(t, 200, status)
		require.EqualValues(t, 1, b.Ledger().KeyConflicts)
		require.EqualValues(t, 1, b.Ledger().CapturedOrders)
	})

	t.Run("of many at once one captures and the others find it in progress", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "latency=500ms", paymenttest.Options{})
		statuses := make(chan int, 10)
		var group sync.WaitGroup
		for range cap(statuses) {
			group.Go(func() {
				status, _ := b.post("k", order(1))
				statuses <- status
			})
		}
		group.Wait()
		close(statuses)
		count := map[int]int{}
		for status := range statuses {
			count[status]++
		}
		require.Equal(t, map[int]int{200: 1, 409: 9}, count)
		require.EqualValues(t, 9, b.Ledger().KeyInProgress)
		require.Zero(t, b.Ledger().InProgress)
	})

	t.Run("a decline stays with its key when the fault is gone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "402=1:card_expired@order:1", paymenttest.Options{})
		status, first := b.post("k", order(1))
		require.Equal(t, 402, status)
		require.Contains(t, first, `"decline_code":"card_expired"`)
		require.NoError(t, b.SetFaults(paymenttest.Faults{}))
		status, again := b.post("k", order(1))
		require.Equal(t, 402, status)
		require.Equal(t, first, again)
		require.EqualValues(t, 1, b.Ledger().Declined)
		require.Zero(t, b.Ledger().Captures)
	})

	t.Run("a fault that declines leaves a captured key alone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "", paymenttest.Options{})
		b.post("k", order(1))
		require.NoError(t, b.SetFaults(paymenttest.Faults{Rules: []paymenttest.Rule{{Action: "402", Rate: 1}}}))
		status, _ := b.post("k", order(1))
		require.Equal(t, 200, status)
		require.Zero(t, b.Ledger().Declined)
	})

	t.Run("a provider that ignores keys captures again and its ledger tells", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "ignore-keys", paymenttest.Options{})
		for range 3 {
			b.post("k", order(1))
		}
		b.post("other", order(1))
		sums := b.Ledger()
		require.EqualValues(t, 4, sums.Captures)
		require.EqualValues(t, 3, sums.DoubleCharges)
		require.Equal(t, map[int]int64{1: 1, 3: 1}, sums.CapturesPerKey)
		require.Equal(t, map[int]int64{4: 1}, sums.CapturesPerOrder)
		require.Equal(t, "4200", sums.CapturedMinor["EUR"])
	})

	t.Run("a key that is charged for two orders is a double charge", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "ignore-keys", paymenttest.Options{})
		b.post("k", order(1))
		b.post("k", order(2))
		require.EqualValues(t, 1, b.Ledger().DoubleCharges)
		require.EqualValues(t, 2, b.Ledger().CapturedOrders)
	})

	t.Run("two keys of one order are a double charge", func(t *testing.T) {
		t.Parallel()
		b := setup(t, "", paymenttest.Options{})
		b.post("a", order(1))
		b.post("b", order(1))
		require.EqualValues(t, 1, b.Ledger().DoubleCharges)
		require.EqualValues(t, 2, b.Ledger().CapturedKeys)
		require.EqualValues(t, 1, b.Ledger().CapturedOrders)
	})
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ key, body string }{
		"no key":                        {"", order(1)},
		"a key over 255 bytes":          {strings.Repeat("k", 256), order(1)},
		"no JSON":                       {"k", `nonsense`},
		"an unknown member":             {"k", `{"orderId":1,"amount":1.00,"currency":"EUR","x":1}`},
		"a member twice":                {"k", `{"orderId":1,"orderId":2,"amount":1.00,"currency":"EUR"}`},
		"another case":                  {"k", `{"orderID":1,"amount":1.00,"currency":"EUR"}`},
		"trailing data":                 {"k", order(1) + order(1)},
		"an order of zero":              {"k", `{"orderId":0,"amount":1.00,"currency":"EUR"}`},
		"an amount as a string":         {"k", `{"orderId":1,"amount":"1.00","currency":"EUR"}`},
		"no amount":                     {"k", `{"orderId":1,"currency":"EUR"}`},
		"three decimals of a euro":      {"k", `{"orderId":1,"amount":1.001,"currency":"EUR"}`},
		"a decimal of a yen":            {"k", `{"orderId":1,"amount":1.5,"currency":"JPY"}`},
		"an amount of zero":             {"k", `{"orderId":1,"amount":0.00,"currency":"EUR"}`},
		"an unknown currency":           {"k", `{"orderId":1,"amount":1,"currency":"ZZZ"}`},
		"a body over 64 KiB":            {"k", `{"orderId":1,` + strings.Repeat(" ", 64<<10) + `"amount":1.00,"currency":"EUR"}`},
		"an exponent beyond all bounds": {"k", `{"orderId":1,"amount":1e999999999,"currency":"EUR"}`},
	}
	b := setup(t, "", paymenttest.Options{})
	for name, c := range cases {
		status, _ := b.post(c.key, c.body)
		require.Equal(t, http.StatusBadRequest, status, name)
	}
	sums := b.Ledger()
	require.EqualValues(t, len(cases), sums.Refused)
	require.EqualValues(t, len(cases), sums.Posts)
	require.Zero(t, sums.Captures)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	// Every POST but the last meets the fault. captured tells whether the fault came after the charge.
	cases := map[string]struct {
		fault    string
		status   int // 0: an error on the way
		captured bool
		check    func(*testing.T, *http.Response, string, error)
	}{
		"a 5xx before the charge": {fault: "500-before=next1", status: 500},
		"a 5xx after the charge":  {fault: "503-after=next1:7", status: 503, captured: true, check: header("Retry-After", "7")},
		"a 409":                   {fault: "409=next1", status: 409},
		"a 422":                   {fault: "422=next1", status: 422},
		"a 429 with Retry-After":  {fault: "429=next1:3s", status: 429, check: header("Retry-After", "3")},
		"a 400":                   {fault: "400=next1", status: 400},
		"a 404":                   {fault: "404=next1", status: 404},
		"a 401":                   {fault: "401=next1", status: 401},
		"a 407":                   {fault: "407=next1", status: 407},
		"a redirect":              {fault: "307=next1:http://127.0.0.1:1/x", status: 307, check: header("Location", "http://127.0.0.1:1/x")},
		"a 304 after the charge":  {fault: "304-after=next1", status: 304, captured: true},
		"a reset before":          {fault: "reset-before=next1", check: wantError(syscall.ECONNRESET)},
		"a reset after":           {fault: "reset-after=next1", captured: true, check: wantError(syscall.ECONNRESET)},
		"a body cut off":          {fault: "cut=next1", captured: true, check: wantError(io.ErrUnexpectedEOF)},
		"a hang that ends":        {fault: "hang=next1:20ms", status: 200, captured: true},
		"a hang before that ends": {fault: "hang-before=next1:20ms", status: 200, captured: true},
		"an id of 10 MB": {fault: "huge-id=next1", status: 200, captured: true, check: func(t *testing.T, _ *http.Response, body string, _ error) {
			t.Helper()
			require.Greater(t, len(body), 10<<20)
		}},
		"an id with NUL": {fault: "nul-id=next1", status: 200, captured: true, check: contains(`"ch_\u0000`)},
		"no JSON":        {fault: "not-json=next1", status: 200, captured: true, check: contains("<html>")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.fault, paymenttest.Options{})
			response, body, err := b.send(http.MethodPost, "/v1/charges", "k", order(1))
			if c.status == 0 {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.status, response.StatusCode)
			}
			if c.check != nil {
				c.check(t, response, body, err)
			}
			charge, _ := b.Charge("k")
			require.Equal(t, c.captured, charge.Status == "captured", charge.Status)

			status, _ := b.post("k", order(1)) // and then it is over
			require.Equal(t, 200, status)
			require.EqualValues(t, 1, b.Ledger().Captures)
			action, _, _ := strings.Cut(c.fault, "=")
			require.Equal(t, map[string]int64{action: 1}, b.Ledger().Faults)
		})
	}
}

func header(name, want string) func(*testing.T, *http.Response, string, error) {
	return func(t *testing.T, response *http.Response, _ string, _ error) {
		t.Helper()
		require.Equal(t, want, response.Header.Get(name))
	}
}

func contains(want string) func(*testing.T, *http.Response, string, error) {
	return func(t *testing.T, _ *http.Response, body string, _ error) {
		t.Helper()
		require.Contains(t, body, want)
	}
}

func wantError(want error) func(*testing.T, *http.Response, string, error) {
	return func(t *testing.T, _ *http.Response, _ string, err error) {
		t.Helper()
		require.ErrorIs(t, err, want)
	}
}

func TestHangsEndWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"hang": "captured", "hang-before": "open"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, name+"=1", paymenttest.Options{})
			b.http.Timeout = 100 * time.Millisecond
			_, _, err := b.send(http.MethodPost, "/v1/charges", "k", order(1))
			require.Error(t, err)
			charge, ok := b.Charge("k")
			require.True(t, ok)
			require.Equal(t, want, charge.Status)
		})
	}
}

func TestAChargeThatHasBegunIsCarriedOutWithoutItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t, "latency=150ms", paymenttest.Options{})
	b.http.Timeout = 50 * time.Millisecond
	_, _, err := b.send(http.MethodPost, "/v1/charges", "k", order(1))
	require.Error(t, err)
	require.Eventually(t, func() bool { return b.Ledger().Captures == 1 }, 5*time.Second, 5*time.Millisecond)
}

func TestCloseEndsEveryWait(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"latency=5m", "hang=1"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t, fault, paymenttest.Options{})
			statuses := make(chan int, 1)
			go func() {
				response, _, err := b.send(http.MethodPost, "/v1/charges", "k", order(1))
				if err != nil {
					statuses <- 0
					return
				}
				statuses <- response.StatusCode
			}()
			require.Eventually(t, func() bool { return b.Ledger().Keys == 1 }, 5*time.Second, time.Millisecond)
			b.Provider.Close()
			require.Equal(t, 200, <-statuses)
			require.EqualValues(t, 1, b.Ledger().Captures)
		})
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	b := setup(t, "402=1@order:2,503=1@order:3", paymenttest.Options{})
	keys := []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
	for i, key := range keys {
		b.post(key, order(i+1))
	}
	look := func(key string) (int, string) {
		response, body, err := b.send(http.MethodGet, "/v1/charges?idempotencyKey="+key, "", "")
		require.NoError(t, err)
		return response.StatusCode, body
	}
	status, body := look(keys[0])
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"id":"ch_0000000000000001","status":"captured","orderId":1,"amount":10.50,"currency":"EUR"}`, body)
	status, body = look(keys[1])
	require.Equal(t, 200, status)
	require.Contains(t, body, `"status":"declined"`)
	status, _ = look(keys[2])
	require.Equal(t, 404, status, "begun by no POST")
	status, _ = look("unheard-of")
	require.Equal(t, 404, status)
}

func TestTheTokenIsAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, "", paymenttest.Options{APIKey: "secret"})
	status, _ := b.post("k", order(1))
	require.Equal(t, 401, status)
	require.EqualValues(t, 1, b.Ledger().Refused)
}

func TestAFullLedgerChargesNoNewKey(t *testing.T) {
	t.Parallel()
	b := setup(t, "", paymenttest.Options{MaxKeys: 1})
	b.post("a", order(1))
	status, _ := b.post("b", order(2))
	require.Equal(t, 503, status)
	status, _ = b.post("a", order(1))
	require.Equal(t, 200, status)
	require.EqualValues(t, 1, b.Ledger().Keys)
}

func TestAdminRoutes(t *testing.T) {
	t.Parallel()
	b := setup(t, "", paymenttest.Options{})
	const many = 1300 // more than two pages
	for i := range many {
		b.post(fmt.Sprintf("k%d", i), order(i+1))
	}
	b.post("k7", order(8))

	_, body, err := b.send(http.MethodGet, "/_ledger", "", "")
	require.NoError(t, err)
	var sums paymenttest.Ledger
	require.NoError(t, json.Unmarshal([]byte(body), &sums))
	require.Equal(t, b.Ledger(), sums)
	require.EqualValues(t, many+1, sums.Posts)

	_, body, err = b.send(http.MethodGet, "/_ledger/charges", "", "")
	require.NoError(t, err)
	lines := bufio.NewScanner(strings.NewReader(body))
	for i := range many {
		require.True(t, lines.Scan())
		var charge paymenttest.Charge
		require.NoError(t, json.Unmarshal(lines.Bytes(), &charge))
		require.Equal(t, fmt.Sprintf("k%d", i), charge.Key)
		require.EqualValues(t, 1050, charge.Minor)
	}
	require.False(t, lines.Scan())

	_, body, err = b.send(http.MethodGet, "/_ledger/charges?minPosts=2", "", "")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(body, "\n"))
	require.Contains(t, body, `"key":"k7"`)

	response, body, err := b.send(http.MethodPut, "/_faults", "", `{"rules":[{"action":"nonsense","rate":2},{"action":"cut","hold":"1s"}],"latency":{"kind":"slow"}}`)
	require.NoError(t, err)
	require.Equal(t, 400, response.StatusCode)
	for _, complaint := range []string{"unknown action", "never played", "hold: only for", "latency: kind"} {
		require.Contains(t, body, complaint)
	}
	response, body, err = b.send(http.MethodPut, "/_faults", "", `{"rules":[{"action":"503-after","rate":1}],"latency":{"kind":"fixed","min":"1ms"}}`)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode, body)
	status, _ := b.post("new", order(99))
	require.Equal(t, 503, status)

	response, _, err = b.send(http.MethodPost, "/_reset", "", "")
	require.NoError(t, err)
	require.Equal(t, 204, response.StatusCode)
	require.Zero(t, b.Ledger().Posts)
	response, _, err = b.send(http.MethodGet, "/healthz", "", "")
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
}
