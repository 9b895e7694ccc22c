package payment

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// insider returns a client whose transport a test may bend.
func insider(tb testing.TB, config Config) *Client {
	tb.Helper()
	fill(&config.Backoff, time.Millisecond)
	client, err := New(config, Tools{})
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}

func aRequest(tb testing.TB) domain.ChargeRequest {
	tb.Helper()
	amount, err := domain.NewMoney(1050, "EUR")
	require.NoError(tb, err)
	return domain.ChargeRequest{EventID: uuid.Must(uuid.NewV7()), OrderID: 1, Amount: amount}
}

// rawServer speaks TCP: handle gets each connection.
func rawServer(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// readRequest takes one whole request off a connection.
func readRequest(reader *bufio.Reader) (*http.Request, string, error) {
	request, err := http.ReadRequest(reader)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(request.Body)
	return request, string(body), err
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"id\":\"ch_1\"}"

func resetConn(conn net.Conn) {
	if wrapped, ok := conn.(*tls.Conn); ok {
		conn = wrapped.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func TestSurelyNotSent(t *testing.T) {
	t.Parallel()

	free := rawServer(t, func(net.Conn) {})
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	// Accepts and says nothing, so that the handshake never ends.
	mute := rawServer(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the client, as it should
	stranger.StartTLS()
	t.Cleanup(stranger.Close)

	cases := map[string]struct{ url, detail string }{
		"connection refused":                    {"http://" + closed.Addr().String(), "not sent: connection refused"},
		"dns failure":                           {"http://no..such.host", "not sent: dns lookup failed"},
		"https to a server of http":             {"https://" + plain.Listener.Addr().String(), "not sent: tls failure"},
		"a certificate of nobody we know":       {stranger.URL, "not sent: tls failure"},
		"a handshake that ends at once":         {"https://" + free, "not sent: "},
		"our timeout before the request is out": {"https://" + mute, "not sent: timeout"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 30 * time.Second // room for a slow machine
			if strings.Contains(c.detail, "timeout") {
				timeout = 200 * time.Millisecond
			}
			client := insider(t, Config{URL: c.url, Timeout: timeout, Attempts: 2})
			answer := client.Charge(t.Context(), aRequest(t))
			require.Contains(t, answer.Detail, c.detail)
			answer.Detail = ""
			require.Equal(t, domain.Answer{Kind: domain.NotSent}, answer)
		})
	}
}

func TestCallingOffBeforeAnythingIsSentIsWithholding(t *testing.T) {
	t.Parallel()
	accepted := make(chan struct{})
	mute := rawServer(t, func(conn net.Conn) {
		close(accepted)
		_, _ = io.Copy(io.Discard, conn)
	})
	client := insider(t, Config{URL: "https://" + mute, Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-accepted
		cancel()
	}()
	answer := client.Charge(ctx, aRequest(t))
	require.Equal(t, domain.Answer{Kind: domain.Withheld, Detail: "not sent: cancelled"}, answer)
}

func TestWaitingInVainForAConnectionIsNotSending(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests.Add(1)
		<-release
	}))
	t.Cleanup(server.Close)
	client := insider(t, Config{URL: server.URL, Timeout: 5 * time.Second, MaxInFlight: 1, Attempts: 1})
	request, first := aRequest(t), make(chan domain.Answer, 1)
	go func() { first <- client.Charge(t.Context(), request) }()
	require.Eventually(t, func() bool { return requests.Load() == 1 }, 5*time.Second, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Equal(t, domain.Answer{Kind: domain.NotSent, Detail: "not sent: timeout"}, client.Charge(ctx, aRequest(t)))
	close(release)
	require.Equal(t, domain.Captured, (<-first).Kind)
	require.EqualValues(t, 1, requests.Load())
}

// The trap of net/http: see newRequest.
func TestABrokenReusedConnectionCostsExactlyOnePost(t *testing.T) {
	t.Parallel()
	var requests, conns atomic.Int64
	address := rawServer(t, func(conn net.Conn) {
		first := conns.Add(1) == 1
		reader := bufio.NewReader(conn)
		for nth := 1; ; nth++ {
			if _, _, err := readRequest(reader); err != nil {
				return
			}
			requests.Add(1)
			if first && nth == 2 {
				resetConn(conn)
				return
			}
			_, _ = io.WriteString(conn, okAnswer)
		}
	})
	client := insider(t, Config{URL: "http://" + address, Attempts: 1})
	require.Equal(t, domain.Captured, client.Charge(t.Context(), aRequest(t)).Kind)
	answer := client.Charge(t.Context(), aRequest(t))
	require.EqualValues(t, 2, requests.Load(), "nobody sent it again")
	require.EqualValues(t, 1, conns.Load())
	require.Equal(t, domain.Unknown, answer.Kind)
	require.True(t, answer.MaybeSent)
	require.Equal(t, 1, answer.Posts)
}

func TestAStaleIdleConnectionIsNotSending(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"plain": (*httptest.Server).Start, "tls": (*httptest.Server).StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
			start(server)
			t.Cleanup(server.Close)
			client := insider(t, Config{URL: server.URL})
			if server.TLS != nil {
				client.transport.TLSClientConfig = &tls.Config{RootCAs: trusted(server)}
			}
			var latest *countedConn
			dial := client.transport.DialContext
			client.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				latest = underneath(conn)
				return conn, err
			}
			require.Equal(t, domain.Captured, client.Charge(t.Context(), aRequest(t)).Kind)

			latest.mu.Lock()
			latest.sealed = true // it takes no writes any more, and the transport has not noticed
			latest.mu.Unlock()
			answer := client.Charge(t.Context(), aRequest(t))
			require.Equal(t, domain.Answer{Kind: domain.Captured, Status: 200, Posts: 1, Detail: "200 ok"}, answer,
				"the first quick attempt sent nothing, the second all")
			require.EqualValues(t, 2, requests.Load())
		})
	}
}

func trusted(server *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	protocols := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols <- r.Proto
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("Authorization") == "Bearer reset" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				resetConn(conn)
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	charge := func(key string) domain.Answer {
		client := insider(t, Config{URL: server.URL, APIKey: key, Attempts: 1})
		client.transport.TLSClientConfig = &tls.Config{RootCAs: trusted(server)}
		return client.Charge(t.Context(), aRequest(t))
	}
	require.Equal(t, domain.Captured, charge("fine").Kind)
	require.Equal(t, "HTTP/1.1", <-protocols, "also where HTTP/2 is offered")
	answer := charge("reset")
	require.Equal(t, domain.Answer{Kind: domain.Unknown, Posts: 1, MaybeSent: true, Detail: answer.Detail}, answer)
	require.Equal(t, "HTTP/1.1", <-protocols)
}

func TestAProxyThatWantsCredentialsIsAMisconfiguration(t *testing.T) {
	t.Parallel()
	var connects atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			connects.Add(1)
		}
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	t.Cleanup(proxy.Close)
	client := insider(t, Config{URL: "https://provider.invalid"})
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	client.transport.Proxy = http.ProxyURL(at)
	answer := client.Charge(t.Context(), aRequest(t))
	require.Equal(t, domain.Answer{Kind: domain.Misconfigured, Status: 407, Detail: "proxy: 407 proxy authentication required"}, answer)
	require.EqualValues(t, 1, connects.Load())
}

func TestOnlyTunnelsGoThroughAProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	at, err := tunnelOnly(httptest.NewRequest(http.MethodPost, "http://provider.example/v1/charges", nil))
	require.NoError(t, err)
	require.Nil(t, at)
	at, err = tunnelOnly(httptest.NewRequest(http.MethodPost, "https://provider.example/v1/charges", nil))
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:9", at.String())
}

func TestTheRequestIsExactlyThis(t *testing.T) {
	t.Parallel()
	type seen struct {
		request *http.Request
		body    string
	}
	requests := make(chan seen, 1)
	address := rawServer(t, func(conn net.Conn) {
		request, body, err := readRequest(bufio.NewReader(conn))
		if err == nil {
			requests <- seen{request, body}
			_, _ = io.WriteString(conn, okAnswer)
		}
	})
	request := aRequest(t)
	request.EventID = uuid.MustParse("0197E5C0-0000-7ABC-8DEF-0123456789AB")
	request.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	request.TraceState = "vendor=1"
	client := insider(t, Config{URL: "http://" + address + "/base/", APIKey: "secret"})
	require.Equal(t, domain.Answer{Kind: domain.Captured, Status: 200, ProviderChargeID: "ch_1", Posts: 1, Detail: "200 ok"},
		client.Charge(t.Context(), request))
	got := <-requests
	require.Equal(t, `{"orderId":1,"amount":10.50,"currency":"EUR"}`, got.body)
	require.Equal(t, "/base/v1/charges", got.request.RequestURI)
	require.Equal(t, http.MethodPost, got.request.Method)
	require.EqualValues(t, len(got.body), got.request.ContentLength)
	require.Equal(t, http.Header{
		"Idempotency-Key": {"0197e5c0-0000-7abc-8def-0123456789ab"},
		"Content-Type":    {"application/json"},
		"Content-Length":  {"45"},
		"Authorization":   {"Bearer secret"},
		"Traceparent":     {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Tracestate":      {"vendor=1"},
		"User-Agent":      {"Go-http-client/1.1"},
	}, got.request.Header)
}

func TestBasicAuthenticationFromTheURL(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got <- user + "/" + password
	}))
	t.Cleanup(server.Close)
	client := insider(t, Config{URL: strings.Replace(server.URL, "http://", "http://shop:pass%3Aword@", 1)})
	require.Equal(t, domain.Captured, client.Charge(t.Context(), aRequest(t)).Kind)
	require.Equal(t, "shop/pass:word", <-got)
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	stream := func(bytes int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			_, _ = io.WriteString(w, `{"id":"ch_1","rest":"`)
			for sent := 0; sent < bytes; sent += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	stuck := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"id":"ch_1",`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	cases := map[string]struct {
		handler http.HandlerFunc
		timeout time.Duration
		want    domain.Answer
	}{
		"a large body is read to its end, and what stands first is kept": {
			stream(20 << 20), time.Minute,
			domain.Answer{Kind: domain.Captured, Status: 200, ProviderChargeID: "ch_1", Posts: 1, Detail: "200 ok"},
		},
		"a body over the bound is unknown": {
			stream(40 << 20), time.Minute,
			domain.Answer{Kind: domain.Unknown, Status: 200, Posts: 1, MaybeSent: true, Detail: "200 ok: body incomplete: body too long"},
		},
		"a body that does not end in time is unknown": {
			stuck, 100 * time.Millisecond,
			domain.Answer{Kind: domain.Unknown, Status: 200, Posts: 1, MaybeSent: true, Detail: "200 ok: body incomplete: timeout"},
		},
		"headers over the bound are unknown": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, time.Minute,
			domain.Answer{Kind: domain.Unknown, Posts: 1, MaybeSent: true, Detail: "no answer: connection failed"},
		},
		"a decline is believed though its body is cut off": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "400")
				w.WriteHeader(http.StatusPaymentRequired)
				_, _ = io.WriteString(w, `{"decline_code":"no_funds",`)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}, time.Minute,
			domain.Answer{
				Kind: domain.Declined, Status: 402, DeclineCode: "no_funds", Posts: 1,
				Detail: "402 payment required: body incomplete: connection closed",
			},
		},
		"no body is a complete one": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, time.Minute,
			domain.Answer{Kind: domain.Captured, Status: 204, Posts: 1, Detail: "204 no content"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.handler)
			t.Cleanup(server.Close)
			client := insider(t, Config{URL: server.URL, Timeout: c.timeout, Attempts: 1})
			require.Equal(t, c.want, client.Charge(t.Context(), aRequest(t)))
		})
	}
}

func TestASealedConnectionWritesNothing(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer there.Close()
	conn := &countedConn{Conn: here}
	go func() { _, _ = io.CopyN(io.Discard, there, 1) }()
	n, err := conn.Write([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, conn.seal())
	_, err = conn.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.EqualValues(t, 1, conn.count())
}
