package payment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/payment/paymenttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client whose back-off is short enough to wait for.
func newClient(tb testing.TB, config payment.Config) *payment.Client {
	tb.Helper()
	if config.Backoff == 0 {
		config.Backoff = time.Millisecond
	}
	client, err := payment.New(config, payment.Tools{})
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}

func newProvider(tb testing.TB, faults string, options paymenttest.Options) *paymenttest.Server {
	tb.Helper()
	var err error
	options.Faults, err = paymenttest.ParseFaults(faults)
	require.NoError(tb, err)
	server, err := paymenttest.Listen(tb.Context(), "127.0.0.1:0", options)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, server.Close()) })
	return server
}

func newRequest(tb testing.TB, orderID int64) domain.ChargeRequest {
	tb.Helper()
	amount, err := domain.NewMoney(1050, "EUR")
	require.NoError(tb, err)
	return domain.ChargeRequest{EventID: uuid.Must(uuid.NewV7()), OrderID: orderID, Amount: amount}
}

// TestAnswers goes through every line of the contract's table over real HTTP. The
// fault lasts, so what is told is what all attempts together say.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const id = "ch_0000000000000001"
	cases := map[string]struct {
		fault    string
		want     domain.Answer
		captures int64
	}{
		"200 is captured": {"", domain.Answer{
			Kind: domain.Captured, Status: 200, ProviderChargeID: id, Posts: 1, Detail: "200 ok",
		}, 1},
		"an id of 10 MB is dropped and the charge captured": {"huge-id=1", domain.Answer{
			Kind: domain.Captured, Status: 200, Posts: 1, Detail: "200 ok",
		}, 1},
		"an id with NUL is dropped and the charge captured": {"nul-id=1", domain.Answer{
			Kind: domain.Captured, Status: 200, Posts: 1, Detail: "200 ok",
		}, 1},
		"a body that is no JSON is captured": {"not-json=1", domain.Answer{
			Kind: domain.Captured, Status: 200, Posts: 1, Detail: "200 ok",
		}, 1},
		"402 is declined and not repeated": {"402=1:card_expired", domain.Answer{
			Kind: domain.Declined, Status: 402, ProviderChargeID: id, DeclineCode: "card_expired", Posts: 1, Detail: "402 payment required",
		}, 0},
		"409 is unknown and not repeated": {"409=1", domain.Answer{
			Kind: domain.Unknown, Status: 409, Posts: 1, MaybeSent: true, Detail: "409 conflict: injected_fault",
		}, 0},
		"422 is a key conflict": {"422=1", domain.Answer{
			Kind: domain.KeyConflict, Status: 422, Posts: 1, MaybeSent: true, Detail: "422 unprocessable entity: injected_fault",
		}, 0},
		"401 is a misconfiguration and not repeated": {"401=1", misconfigured(401), 0},
		"403 is a misconfiguration and not repeated": {"403=1", misconfigured(403), 0},
		"404 is a misconfiguration and not repeated": {"404=1", misconfigured(404), 0},
		"405 is a misconfiguration and not repeated": {"405=1", misconfigured(405), 0},
		"407 is a misconfiguration and not repeated": {"407=1", misconfigured(407), 0},
		"301 is not followed and maybe charged":      {"301=1", redirected(301), 0},
		"302 is not followed and maybe charged":      {"302-after=1:http://[::1", redirected(302), 1},
		"304 is not followed and maybe charged":      {"304-after=1", domain.Answer{Kind: domain.Misconfigured, Status: 304, Posts: 1, MaybeSent: true, Detail: "304 not modified"}, 1},
		"307 is not followed and maybe charged":      {"307-after=1:/elsewhere", redirected(307), 1},
		"308 is not followed and maybe charged":      {"308-after=1:/v1/charges", redirected(308), 1},
		"400 is rejected":                            {"400=1", rejected(400), 0},
		"406 is rejected":                            {"406=1", rejected(406), 0},
		"410 is rejected":                            {"410=1", rejected(410), 0},
		"413 is rejected":                            {"413=1", rejected(413), 0},
		"451 is rejected":                            {"451=1", rejected(451), 0},
		"408 is unknown and repeated":                {"408=1", unknown(408, 3), 0},
		"425 is unknown and repeated":                {"425-after=1", unknown(425, 3), 1},
		"429 without Retry-After is not repeated":    {"429=1", unknown(429, 1), 0},
		"500 is unknown and repeated":                {"500=1", unknown(500, 3), 0},
		"502 is unknown and repeated":                {"502-after=1", unknown(502, 3), 1},
		"503 is unknown and repeated":                {"503-after=1", unknown(503, 3), 1},
		"599 is unknown and repeated":                {"599=1", domain.Answer{Kind: domain.Unknown, Status: 599, Posts: 3, MaybeSent: true, Detail: "599: injected_fault"}, 0},
		"a reset before the charge is unknown": {"reset-before=1", domain.Answer{
			Kind: domain.Unknown, Posts: 3, MaybeSent: true, Detail: "no answer: connection reset",
		}, 0},
		"a reset after the charge is unknown": {"reset-after=1", domain.Answer{
			Kind: domain.Unknown, Posts: 3, MaybeSent: true, Detail: "no answer: connection reset",
		}, 1},
		"a body cut off is unknown": {"cut=1", domain.Answer{
			Kind: domain.Unknown, Status: 200, Posts: 3, MaybeSent: true, Detail: "200 ok: body incomplete: connection closed",
		}, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newProvider(t, c.fault, paymenttest.Options{})
			client := newClient(t, payment.Config{URL: provider.URL()})
			request := newRequest(t, 1)
			answer := client.Charge(t.Context(), request)
			require.Equal(t, c.want, answer)
			require.Equal(t, c.captures, provider.Ledger().Captures)
			require.EqualValues(t, answer.Posts, provider.Ledger().Posts, "every POST is counted")
			charge, ok := provider.Charge(request.EventID.String())
			require.True(t, ok)
			require.Equal(t, "10.50", charge.Amount)
			require.Equal(t, "EUR", charge.Currency)
		})
	}
}

func misconfigured(status int) domain.Answer {
	return domain.Answer{Kind: domain.Misconfigured, Status: status, Posts: 1, Detail: detail(status)}
}

func redirected(status int) domain.Answer {
	return domain.Answer{Kind: domain.Misconfigured, Status: status, Posts: 1, MaybeSent: true, Detail: detail(status)}
}

func rejected(status int) domain.Answer {
	return domain.Answer{Kind: domain.Rejected, Status: status, Posts: 1, Detail: detail(status)}
}

func unknown(status, posts int) domain.Answer {
	return domain.Answer{Kind: domain.Unknown, Status: status, Posts: posts, MaybeSent: true, Detail: detail(status)}
}

func detail(status int) string {
	return fmt.Sprintf("%d %s: injected_fault", status, strings.ToLower(http.StatusText(status)))
}

func TestQuickAttempts(t *testing.T) {
	t.Parallel()

	t.Run("a retry with the same key finds the charge of the first", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "503-after=next2", paymenttest.Options{})
		answer := newClient(t, payment.Config{URL: provider.URL()}).Charge(t.Context(), newRequest(t, 1))
		require.Equal(t, domain.Captured, answer.Kind)
		require.Equal(t, 3, answer.Posts)
		require.True(t, answer.MaybeSent)
		require.EqualValues(t, 1, provider.Ledger().Captures)
		require.Zero(t, provider.Ledger().DoubleCharges)
	})

	t.Run("a refusal after an unknown answer may still be charged", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "503-after=next1,404=1", paymenttest.Options{})
		answer := newClient(t, payment.Config{URL: provider.URL()}).Charge(t.Context(), newRequest(t, 1))
		require.Equal(t, domain.Misconfigured, answer.Kind)
		require.Equal(t, 2, answer.Posts)
		require.True(t, answer.MaybeSent)
	})

	t.Run("Retry-After that fits is waited for", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "429=next1:1", paymenttest.Options{})
		began := time.Now()
		answer := newClient(t, payment.Config{URL: provider.URL()}).Charge(t.Context(), newRequest(t, 1))
		require.Equal(t, domain.Captured, answer.Kind)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
	})

	for _, status := range []string{"429", "503"} {
		t.Run("Retry-After of a "+status+" that does not fit is handed on", func(t *testing.T) {
			t.Parallel()
			provider := newProvider(t, status+"=1:30", paymenttest.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			began := time.Now()
			answer := newClient(t, payment.Config{URL: provider.URL()}).Charge(ctx, newRequest(t, 1))
			require.Less(t, time.Since(began), 6*time.Second, "nothing is waited for in vain")
			require.Equal(t, domain.Unknown, answer.Kind)
			require.Equal(t, 30*time.Second, answer.RetryAfter)
			require.Equal(t, 1, answer.Posts)
		})
	}

	t.Run("no further attempt starts without room for a whole one", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "503=1", paymenttest.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		answer := newClient(t, payment.Config{URL: provider.URL(), Timeout: 2 * time.Second}).Charge(ctx, newRequest(t, 1))
		require.Equal(t, unknown(503, 1), answer)
	})

	t.Run("a context that is done sends nothing", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "", paymenttest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		answer := newClient(t, payment.Config{URL: provider.URL()}).Charge(ctx, newRequest(t, 1))
		require.Equal(t, domain.Answer{Kind: domain.Withheld, Detail: "not sent: cancelled or no time left"}, answer)
		require.Zero(t, provider.Ledger().Posts)
	})

	t.Run("a context cancelled between attempts leaves the last answer", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "503=1", paymenttest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		client := newClient(t, payment.Config{URL: provider.URL(), Backoff: time.Minute, Timeout: 5 * time.Minute})
		request, answers := newRequest(t, 1), make(chan domain.Answer, 1)
		go func() { answers <- client.Charge(ctx, request) }()
		require.Eventually(t, func() bool { return provider.Ledger().Posts == 1 }, 5*time.Second, time.Millisecond)
		time.AfterFunc(50*time.Millisecond, cancel)
		require.Equal(t, unknown(503, 1), <-answers)
		require.EqualValues(t, 1, provider.Ledger().Posts)
	})

	t.Run("a context cancelled while the answer is due leaves it unknown", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "hang=1", paymenttest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		client := newClient(t, payment.Config{URL: provider.URL()})
		request, answers := newRequest(t, 1), make(chan domain.Answer, 1)
		go func() { answers <- client.Charge(ctx, request) }()
		require.Eventually(t, func() bool { return provider.Ledger().Captures == 1 }, 5*time.Second, time.Millisecond)
		cancel()
		require.Equal(t, domain.Answer{Kind: domain.Unknown, Posts: 1, MaybeSent: true, Detail: "no answer: cancelled"}, <-answers)
	})

	t.Run("a hang ends with the attempt's timeout", func(t *testing.T) {
		t.Parallel()
		provider := newProvider(t, "hang=1", paymenttest.Options{})
		client := newClient(t, payment.Config{URL: provider.URL(), Timeout: time.Second, Attempts: 2}) // long enough to reach the provider
		answer := client.Charge(t.Context(), newRequest(t, 1))
		require.Equal(t, domain.Unknown, answer.Kind)
		require.True(t, answer.MaybeSent)
		require.Equal(t, "no answer: timeout", answer.Detail)
		require.EqualValues(t, 1, provider.Ledger().Captures)
	})
}

func TestFiveHundredInFlight(t *testing.T) {
	t.Parallel()
	const many = 500
	provider := newProvider(t, "latency=500ms,503-after=next60,reset-after=next60,cut=next30", paymenttest.Options{})
	client := newClient(t, payment.Config{URL: provider.URL(), MaxInFlight: many, Attempts: 5, Timeout: 10 * time.Second})
	answers := make(chan domain.Answer, many)
	start := make(chan struct{})
	for i := range many {
		request := newRequest(t, int64(i+1))
		go func() {
			<-start
			answers <- client.Charge(t.Context(), request)
		}()
	}
	close(start)
	require.Eventually(t, func() bool { return provider.Ledger().InProgress > many*9/10 }, 10*time.Second, time.Millisecond,
		"all are in flight at once")
	posts := 0
	for range many {
		answer := <-answers
		require.Equal(t, domain.Captured, answer.Kind, answer.Detail)
		posts += answer.Posts
	}
	sums := provider.Ledger()
	require.EqualValues(t, many, sums.Captures)
	require.Zero(t, sums.DoubleCharges)
	require.EqualValues(t, posts, sums.Posts)
	require.Equal(t, many+150, posts, "each fault cost one more POST")
	require.Equal(t, "525000", sums.CapturedMinor["EUR"])
}
