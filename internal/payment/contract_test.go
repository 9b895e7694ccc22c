package payment_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/require"

	"example.com/billing/api"
	"example.com/billing/internal/payment"
	"example.com/billing/internal/payment/paymenttest"
)

// contract checks what goes over the wire against the published contract.
type contract struct {
	router routers.Router

	mu      sync.Mutex
	checked map[int]int // exchanges by status
	faults  []error
}

func newContract(t *testing.T, url string) *contract {
	t.Helper()
	text, err := api.FS.ReadFile("payment-provider.openapi.yaml")
	require.NoError(t, err)
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context()))
	document.Servers = openapi3.Servers{{URL: url}}
	router, err := legacy.NewRouter(document)
	require.NoError(t, err)
	return &contract{router: router, checked: map[int]int{}}
}

// check validates a request with its body, and the answer to it.
func (c *contract) check(request *http.Request, body []byte, status int, header http.Header, answer []byte) error {
	request.URL.Scheme, request.URL.Host = "http", request.Host // a server sees the path only
	route, params, err := c.router.FindRoute(request)
	if err != nil {
		return err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
	}
	asked := &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route, Options: options}
	if err := openapi3filter.ValidateRequest(request.Context(), asked); err != nil {
		return err
	}
	return openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: status, Header: header,
		Body: io.NopCloser(bytes.NewReader(answer)), Options: options,
	})
}

// recorder keeps what a handler answers, and sends it on.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

func (c *contract) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		out := &recorder{ResponseWriter: w}
		next.ServeHTTP(out, r)
		err := c.check(r, body, out.status, w.Header(), out.body.Bytes())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.checked[out.status]++
		if err != nil {
			c.faults = append(c.faults, err)
		}
	})
}

func TestClientAndTestProviderKeepThePublishedContract(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("402=1@order:2,409=1@order:3,422=1@order:4,429=1:9@order:5,503-after=1@order:6,404=1@order:7,400=1@order:8")
	require.NoError(t, err)
	provider, err := paymenttest.New(paymenttest.Options{Faults: faults})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	contract := newContract(t, "http://"+server.Listener.Addr().String())
	server.Config.Handler = contract.around(provider)
	server.Start()
	t.Cleanup(server.Close)
	client := newClient(t, payment.Config{URL: server.URL, Attempts: 1, APIKey: "k"})
	for order := range int64(8) {
		request := newRequest(t, order+1)
		client.Charge(t.Context(), request)
		look, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/charges?idempotencyKey="+request.EventID.String(), nil)
		require.NoError(t, err)
		response, err := server.Client().Do(look)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	server.Close()
	require.Empty(t, contract.faults)
	require.Equal(t, map[int]int{200: 4, 402: 1, 409: 1, 422: 1, 429: 1, 503: 1, 404: 6, 400: 1}, contract.checked)
}
