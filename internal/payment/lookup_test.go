package payment_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/payment/paymenttest"
)

func TestALookUpTellsWhatBecameOfAKey(t *testing.T) {
	t.Parallel()
	server := newProvider(t, "402=1:card_expired@order:2,503=1@order:3", paymenttest.Options{APIKey: "secret"})
	client := newClient(t, payment.Config{URL: server.URL(), APIKey: "secret"})
	for order, want := range map[int64]domain.Found{
		1: {Known: true, Status: domain.ChargeCaptured},
		2: {Known: true, Status: domain.ChargeDeclined, DeclineCode: "card_expired"},
		3: {},
	} {
		request := newRequest(t, order)
		answer := client.Charge(t.Context(), request)
		if want.Known {
			want.OrderID, want.Amount, want.ProviderChargeID = order, request.Amount, answer.ProviderChargeID
			require.NotEmpty(t, answer.ProviderChargeID)
		}
		posts := server.Ledger().Posts
		found, err := client.Find(t.Context(), request.EventID)
		require.NoError(t, err)
		require.Equal(t, want, found)
		require.Equal(t, posts, server.Ledger().Posts, "asking changes nothing")
	}
	found, err := client.Find(t.Context(), uuid.New())
	require.NoError(t, err)
	require.Zero(t, found)

	stranger := newClient(t, payment.Config{URL: server.URL()})
	_, err = stranger.Find(t.Context(), uuid.New())
	require.EqualError(t, err, "look-up: 401 unauthorized")
}

func TestALookUpBelievesNothingButACompleteAnswer(t *testing.T) {
	t.Parallel()
	const whole = `{"id":"ch_1","status":"captured","orderId":7,"amount":10.50,"currency":"EUR"}`
	euros, err := domain.NewMoney(1050, "EUR")
	require.NoError(t, err)
	captured := domain.Found{Known: true, Status: domain.ChargeCaptured, ProviderChargeID: "ch_1", OrderID: 7, Amount: euros}
	anonymous := captured
	anonymous.ProviderChargeID = ""
	for name, tc := range map[string]struct {
		status int
		body   string
		want   domain.Found
		err    string
	}{
		"whole":                   {200, whole, captured, ""},
		"the same amount":         {200, strings.Replace(whole, "10.50", "10.5", 1), captured, ""},
		"an id that is not sane":  {200, strings.Replace(whole, "ch_1", `a\u0000b`, 1), anonymous, ""},
		"missing":                 {404, `{"code":"charge_not_found"}`, domain.Found{}, ""},
		"another success":         {204, "", domain.Found{}, "look-up: 204 no content"},
		"a redirect":              {302, "", domain.Found{}, "look-up: 302 found"},
		"gone is not missing":     {410, "", domain.Found{}, "look-up: 410 gone"},
		"a server error":          {503, "", domain.Found{}, "look-up: 503 service unavailable"},
		"no JSON":                 {200, "<html>", domain.Found{}, "look-up: 200 ok: not a JSON object"},
		"something behind it":     {200, whole + "{}", domain.Found{}, "look-up: 200 ok: not a JSON object"},
		"a list":                  {200, "[" + whole + "]", domain.Found{}, "look-up: 200 ok: not a JSON object"},
		"null":                    {200, "null", domain.Found{}, "look-up: 200 ok: status is neither captured nor declined"},
		"another status":          {200, strings.Replace(whole, "captured", "pending", 1), domain.Found{}, "look-up: 200 ok: status is neither captured nor declined"},
		"a name in another case":  {200, strings.Replace(whole, "status", "Status", 1), domain.Found{}, "look-up: 200 ok: status is neither captured nor declined"},
		"no order":                {200, strings.Replace(whole, "orderId", "order", 1), domain.Found{}, "look-up: 200 ok: orderId is not a whole number above zero"},
		"an order as text":        {200, strings.Replace(whole, `7`, `"7"`, 1), domain.Found{}, "look-up: 200 ok: orderId is not a whole number above zero"},
		"an order below one":      {200, strings.Replace(whole, `7`, `0`, 1), domain.Found{}, "look-up: 200 ok: orderId is not a whole number above zero"},
		"an amount as text":       {200, strings.Replace(whole, `10.50`, `"10.50"`, 1), domain.Found{}, "look-up: 200 ok: amount and currency are not money"},
		"too many decimals":       {200, strings.Replace(whole, `10.50`, `10.501`, 1), domain.Found{}, "look-up: 200 ok: amount and currency are not money"},
		"an unknown currency":     {200, strings.Replace(whole, `EUR`, `EUX`, 1), domain.Found{}, "look-up: 200 ok: amount and currency are not money"},
		"no currency":             {200, strings.Replace(whole, `,"currency":"EUR"`, ``, 1), domain.Found{}, "look-up: 200 ok: amount and currency are not money"},
		"longer than anyone asks": {200, whole + strings.Repeat(" ", 64<<10), domain.Found{}, "look-up: 200 ok: longer than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := uuid.Must(uuid.NewV7())
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/base/v1/charges" || r.URL.Query().Get("idempotencyKey") != key.String() {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer server.Close()
			client := newClient(t, payment.Config{URL: server.URL + "/base"})
			defer client.Close()
			found, err := client.Find(t.Context(), key)
			require.Equal(t, tc.want, found)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
			}
		})
	}
}

func TestALookUpThatGetsNoAnswerIsNoAnswer(t *testing.T) {
	t.Parallel()
	client := newClient(t, payment.Config{URL: "http://127.0.0.1:1"})
	_, err := client.Find(t.Context(), uuid.New())
	require.EqualError(t, err, "look-up: connection refused")

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("idempotencyKey") == uuid.Max.String() {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"id"`))
			return
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	slow := newClient(t, payment.Config{URL: server.URL, Timeout: 50 * time.Millisecond})
	defer slow.Close()
	_, err = slow.Find(t.Context(), uuid.New())
	require.EqualError(t, err, "look-up: timeout")
	patient := newClient(t, payment.Config{URL: server.URL})
	defer patient.Close()
	_, err = patient.Find(t.Context(), uuid.Max)
	require.EqualError(t, err, "look-up: 200 ok: body incomplete: connection closed")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = slow.Find(over, uuid.New())
	require.EqualError(t, err, "look-up: cancelled")
}
