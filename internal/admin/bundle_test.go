package admin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
)

const (
	testGroup     = "billing"
	operatorToken = "operator-secret"
	readToken     = "reader-secret"
	customerID    = 777666555 // to be found in no log line
)

var openPaths = []string{"/livez", "/readyz", "/healthz", "/metrics"}

// noon is when the tests take place.
var noon = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

type stillClock struct{ now time.Time }

func (c stillClock) Now() time.Time { return c.now }

// journal keeps log lines, also those of other goroutines.
type journal struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes.String()
}

// lines returns the lines with a message.
func (j *journal) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(j.String()) {
		var parsed map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &parsed))
		if strings.Contains(as[string](t, parsed["msg"]), message) {
			lines = append(lines, parsed)
		}
	}
	return lines
}

// bundle is a server with all that it shows.
type bundle struct {
	cfg     admin.Config
	deps    admin.Deps
	server  *admin.Server
	archive *archive
	desk    *desk
	log     *journal
}

// setup returns a server of both tokens over an empty archive; with says what is
// to be different.
func setup(t *testing.T, with ...func(*bundle)) *bundle {
	t.Helper()
	b := &bundle{archive: &archive{stories: map[uuid.UUID]domain.EventStory{}}, desk: &desk{}, log: &journal{}}
	b.cfg = admin.Config{Addr: "127.0.0.1:0", Token: operatorToken, ReadToken: readToken}
	b.deps = admin.Deps{
		Archive: b.archive, Operator: b.desk, Group: testGroup, Retention: 168 * time.Hour,
		Consumer: func() admin.ConsumerStatus { return admin.ConsumerStatus{Topic: "orders", Group: testGroup} },
		Intake:   &lever{}, Config: func() admin.ConfigStatus { return admin.ConfigStatus{} },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		OpenAPI: theContract(t).bytes, Clock: stillClock{noon},
		Logger: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range with {
		change(b)
	}
	var err error
	b.server, err = admin.New(b.cfg, b.deps)
	require.NoError(t, err)
	return b
}

// send asks and holds the answer against the contract.
func (b *bundle) send(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	got := httptest.NewRecorder()
	b.server.Handler().ServeHTTP(got, r)
	r.Body = io.NopCloser(bytes.NewReader(body)) // the handler has read the first one
	theContract(t).check(t, r, got)
	for header, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
	} {
		require.Equal(t, want, got.Header().Get(header), header)
	}
	return got
}

func (b *bundle) ask(t *testing.T, method, target, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return b.send(t, r)
}

func (b *bundle) get(t *testing.T, target string) *httptest.ResponseRecorder {
	t.Helper()
	return b.ask(t, http.MethodGet, target, readToken)
}

// show asks for JSON that is there.
func (b *bundle) show(t *testing.T, target string) map[string]any {
	t.Helper()
	got := b.get(t, target)
	require.Equal(t, http.StatusOK, got.Code, got.Body.String())
	require.Equal(t, "application/json", got.Header().Get("Content-Type"))
	return as[map[string]any](t, decode(t, got))
}

// refused asks for what is a problem, and returns it.
func (b *bundle) refused(t *testing.T, target string, status int) map[string]any {
	t.Helper()
	got := b.get(t, target)
	require.Equal(t, status, got.Code, got.Body.String())
	return asProblem(t, got)
}

func asProblem(t *testing.T, got *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	require.Equal(t, "application/problem+json", got.Header().Get("Content-Type"))
	body := as[map[string]any](t, decode(t, got))
	require.Equal(t, "about:blank", body["type"])
	require.EqualValues(t, got.Code, body["status"])
	require.Equal(t, http.StatusText(got.Code), body["title"])
	require.NotEmpty(t, body["detail"])
	return body
}

// as returns a value that is of a type.
func as[T any](t *testing.T, value any) T {
	t.Helper()
	typed, ok := value.(T)
	require.True(t, ok, "%T", value)
	return typed
}

// items returns the items of a list that is asked for.
func (b *bundle) items(t *testing.T, target string) []any {
	t.Helper()
	return as[[]any](t, b.show(t, target)["items"])
}

// theCharge returns the charge number n of the tests, one a minute.
func theCharge(t *testing.T, n int, with ...func(*domain.Charge)) domain.Charge {
	t.Helper()
	amount, err := domain.NewMoney(1050, "EUR")
	require.NoError(t, err)
	c := domain.Charge{
		EventID: theID(n), OrderID: int64(n), CustomerID: customerID, Amount: amount,
		Status: domain.ChargeCaptured, ProviderChargeID: "ch_1", Attempts: 1, ClaimsOrder: true,
		OccurredAt: noon.Add(-time.Hour), SettledAt: noon.Add(time.Duration(n) * time.Minute),
		Source: domain.Coordinates{Topic: "orders", Partition: 2, Offset: int64(n)},
	}
	for _, change := range with {
		change(&c)
	}
	return c
}

// theLetter returns the dead letter number n of the tests: an invalid record.
func theLetter(n int, with ...func(*domain.Letter)) domain.Letter {
	l := domain.Letter{
		ID: int64(n), Reason: domain.ReasonJSON, Detail: "not JSON", State: domain.LetterOpen, Group: testGroup, At: noon,
		Record: domain.Record{
			Coordinates: domain.Coordinates{Topic: "orders", Partition: 1, Offset: int64(n)}, Timestamp: noon.Add(-time.Hour),
		},
	}
	for _, change := range with {
		change(&l)
	}
	return l
}

// theDuplicate returns the line number n of the log: the event's record, elsewhere,
// n minutes later.
func theDuplicate(n int, with ...func(*domain.Duplicate)) domain.Duplicate {
	d := domain.Duplicate{
		ID: int64(n), Group: testGroup, EventID: theID(n), Kind: domain.DuplicateRepublished,
		Record: domain.Coordinates{Topic: "orders", Partition: 3, Offset: int64(1000 + n)}, SeenAt: noon.Add(time.Duration(n) * time.Minute),
		First: domain.Coordinates{Topic: "orders", Partition: 2, Offset: int64(n)}, FirstSeenAt: noon,
	}
	for _, change := range with {
		change(&d)
	}
	return d
}

func theID(n int) uuid.UUID {
	id := uuid.MustParse("0195500a-7c00-7000-8000-000000000000")
	id[14], id[15] = byte(n>>8), byte(n)
	return id
}
