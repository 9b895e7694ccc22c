package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"example.com/billing/internal/admin"
)

func TestWhatIsNotRouted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := "/api/v1/" + strings.Repeat("x", 500)
	for name, test := range map[string]struct {
		method, path string
		status       int
		allow        string
		detail       string
	}{
		"an unknown route is not found":       {http.MethodGet, "/api/v1/unknown", http.StatusNotFound, "", "there is no route /api/v1/unknown: /openapi.yaml lists those that there are"},
		"the root is not found":               {http.MethodGet, "/", http.StatusNotFound, "", "there is no route /: /openapi.yaml"},
		"a slash behind a route is not found": {http.MethodGet, "/api/v1/charges/", http.StatusNotFound, "", "there is no route /api/v1/charges/, but there is one without a slash at its end"},
		"an unknown route with a slash":       {http.MethodGet, "/api/v1/unknown/", http.StatusNotFound, "", "there is no route /api/v1/unknown/: /openapi.yaml"},
		"a route that is too long to repeat":  {http.MethodGet, long, http.StatusNotFound, "", "there is no route " + long[:200] + "…: /openapi.yaml"},
		"an unknown route to be written to":   {http.MethodPost, "/api/v1/unknown", http.StatusNotFound, "", "there is no route /api/v1/unknown"},
		"an unknown method of nothing":        {"PURGE", "/api/v1/unknown", http.StatusNotFound, "", "there is no route /api/v1/unknown"},
		"a route that is only read":           {http.MethodPost, "/api/v1/charges", http.StatusMethodNotAllowed, "GET, HEAD", "this method is none of /api/v1/charges, which has: GET, HEAD"},
		"a route with a parameter":            {http.MethodDelete, "/api/v1/dead-letters/1", http.StatusMethodNotAllowed, "GET, HEAD", "this method is none of /api/v1/dead-letters/1, which has: GET, HEAD"},
		"an open route":                       {http.MethodPost, "/livez", http.StatusMethodNotAllowed, "GET, HEAD", "this method is none of /livez, which has: GET, HEAD"},
		"a method that nobody knows":          {"PURGE", "/api/v1/charges", http.StatusMethodNotAllowed, "GET, HEAD", "this method is none of /api/v1/charges"},
		"options are not asked for":           {http.MethodOptions, "/api/v1/charges", http.StatusMethodNotAllowed, "GET, HEAD", "this method is none of /api/v1/charges"},
		"a route that is only written to":     {http.MethodGet, "/api/v1/dead-letters/1/replay", http.StatusMethodNotAllowed, "POST", "this method is none of /api/v1/dead-letters/1/replay, which has: POST"},
		"an encoded spelling of a route":      {http.MethodGet, "/%6civez", http.StatusNotFound, "", "there is no route /%6civez"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.ask(t, test.method, test.path, operatorToken)
			require.Equal(t, test.status, got.Code)
			require.Equal(t, test.allow, got.Header().Get("Allow"))
			shown := asProblem(t, got)
			require.Equal(t, test.path, shown["instance"])
			require.Contains(t, shown["detail"], test.detail)
		})
	}
}

// A stranger learns of no path whether it is routed, and by which methods: all answers are the
// same but for what was asked for.
func TestAStrangerLearnsNothingOfWhatIsRouted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, token := range []string{"", "wrong-token"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, "PURGE"} {
			for _, path := range closedPaths {
				got := b.ask(t, method, path, token)
				require.Equal(t, http.StatusUnauthorized, got.Code, "%s %s", method, path)
				require.Empty(t, got.Header().Values("Allow"), "%s %s", method, path)
				shown := asProblem(t, got)
				require.Equal(t, path, shown["instance"])
				delete(shown, "instance")
				require.Equal(t, map[string]any{
					"type": "about:blank", "title": "Unauthorized", "status": float64(http.StatusUnauthorized), "detail": "a valid bearer token is needed",
				}, shown, "%s %s", method, path)
			}
		}
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := httptest.NewServer(b.server.Handler())
	defer server.Close()
	for _, path := range append([]string{"/api/v1/charges", "/openapi.yaml"}, openPaths...) {
		var lengths []int64
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+readToken)
			got, err := server.Client().Do(r)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.Equal(t, http.StatusOK, got.StatusCode)
			lengths = append(lengths, got.ContentLength)
		}
		require.Equal(t, lengths[0], lengths[1], path)
	}
}

func TestBadParametersAreNamed(t *testing.T) {
	t.Parallel()
	const stats, charges, letters = "/api/v1/dedup/stats", "/api/v1/charges", "/api/v1/dead-letters"
	const series, log = "/api/v1/dedup/series", "/api/v1/dedup/duplicates"
	b := setup(t)
	for target, parameter := range map[string]string{
		stats + "?window=0m":             "window",
		stats + "?window=59s":            "window",
		stats + "?window=1":              "window",
		stats + "?window=1w":             "window",
		stats + "?window=1m1h":           "window",
		stats + "?window=-1h":            "window",
		stats + "?window=1.5h":           "window",
		stats + "?window=ALL":            "window",
		stats + "?window=1h%00":          "window",
		stats + "?window=401d":           "window",
		stats + "?window=400d1m":         "window",
		stats + "?window=999999d999999h": "window",
		stats + "?window=9999999m":       "window",
		stats + "?windw=1h":              "windw",
		stats + "?window=1h&window=1h":   "window",
		stats + "?limit=1":               "limit",
		series + "?window=0m":            "window",
		series + "?step=week":            "step",
		series + "?step=MINUTE":          "step",
		series + "?limit=1":              "limit",
		log + "?kind=duplicate":          "kind",
		log + "?kind=REDELIVERED":        "kind",
		log + "?eventId=1":               "eventId",
		log + "?event_id=1":              "event_id",
		log + "?limit=501":               "limit",
		log + "?cursor=stolen":           "cursor",
		log + "?window=1h":               "window",
		charges + "?orderId=0":           "orderId",
		charges + "?orderId=-1":          "orderId",
		charges + "?orderId=1.0":         "orderId",
		charges + "?orderId=01":          "orderId",
		charges + "?orderId=%2B1":        "orderId",
		charges + "?orderId=0x1":         "orderId",
		charges + "?status=CAPTURED":     "status",
		charges + "?status=unknown":      "status",
		charges + "?limit=0":             "limit",
		charges + "?limit=501":           "limit",
		charges + "?limit=ten":           "limit",
		charges + "?cursor=stolen":       "cursor",
		charges + "?order_id=1":          "order_id",
		letters + "?reason=invalid":      "reason",
		letters + "?state=closed":        "state",
		letters + "?eventId=1":           "eventId",
		letters + "?limit=501":           "limit",
		letters + "?cursor=stolen":       "cursor",
		letters + "?status=open":         "status",
		letters + "/0":                   "id",
		letters + "/x":                   "id",
		letters + "/-1":                  "id",
		letters + "/9223372036854775808": "id",
		letters + "/1?bytes=1":           "bytes",
		"/api/v1/events/1":               "eventId",
		"/api/v1/consumer?x=1":           "x",

		charges + "?orderId=9223372036854775808":                           "orderId",
		letters + "?eventId=urn:uuid:0195500a-7c00-7000-8000-000000000001": "eventId",
		"/api/v1/events/0195500a7c0070008000000000000001":                  "eventId",
		"/api/v1/events/{0195500a-7c00-7000-8000-000000000001}":            "eventId",
		"/api/v1/events/0195500a-7c00-7000-8000-000000000001?x=1":          "x",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			got := b.refused(t, target, http.StatusBadRequest)
			require.Equal(t, parameter, got["parameter"])
			require.Contains(t, got["detail"], parameter)
		})
	}
	require.NotContains(t, b.refused(t, charges+"?a;b", http.StatusBadRequest), "parameter")
	require.NotContains(t, b.refused(t, charges+"?a=%zz", http.StatusBadRequest), "parameter")
}

func TestAnEmptyParameterIsNotGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.show(t, "/api/v1/charges?orderId=&status=&cursor=&limit=")
	b.show(t, "/api/v1/dead-letters?reason=&state=&eventId=&cursor=&limit=")
	require.Equal(t, "minute", b.show(t, "/api/v1/dedup/series?window=&step=")["step"])
	b.show(t, "/api/v1/dedup/duplicates?kind=&eventId=&cursor=&limit=")
	require.Equal(t, "1h", b.show(t, "/api/v1/dedup/stats?window=")["window"])
}

// archivePaths are the routes that read the archive.
var archivePaths = []string{
	"/api/v1/dedup/stats", "/api/v1/events/0195500a-7c00-7000-8000-000000000001", "/api/v1/charges",
	"/api/v1/dead-letters", "/api/v1/dead-letters/1", "/api/v1/dedup/duplicates", "/api/v1/dedup/series",
}

func TestADatabaseThatFailsIsNoFaultOfTheClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.fault = errors.New("read: connection to db.internal refused")
	for _, path := range archivePaths {
		got := b.refused(t, path, http.StatusServiceUnavailable)
		require.NotContains(t, got["detail"], "db.internal")
	}
	lines := b.log.lines(t, "cannot read the archive")
	require.Len(t, lines, len(archivePaths))
	require.Equal(t, "read: connection to db.internal refused", lines[0]["error"])
	require.Equal(t, "/api/v1/dedup/stats", lines[0]["route"])
}

func TestOnlyAFewReadsRunAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.cfg.MaxQueries = 2
		b.archive.entered, b.archive.release = make(chan struct{}, 10), make(chan struct{})
	})
	answers := make(chan int, 2)
	for range 2 {
		go func() {
			got := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/api/v1/charges", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+readToken)
			b.server.Handler().ServeHTTP(got, r)
			answers <- got.Code
		}()
		<-b.archive.entered
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/charges", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+readToken)
	require.Equal(t, http.StatusServiceUnavailable, b.send(t, r).Code)
	require.Empty(t, b.archive.entered, "the third must wait for its turn")
	close(b.archive.release)
	require.Equal(t, http.StatusOK, <-answers)
	require.Equal(t, http.StatusOK, <-answers)
	b.show(t, "/api/v1/charges") // and the turns are given back
}

func TestAClientThatLeavesIsNoError(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) { b.archive.entered = make(chan struct{}) })
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-b.archive.entered
		leave()
	}()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/charges", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+readToken)
	require.Equal(t, http.StatusServiceUnavailable, b.send(t, r).Code)
	require.Empty(t, b.log.lines(t, "cannot read the archive"))
}

func TestAPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.deps.Consumer = func() admin.ConsumerStatus { panic("a bug") }
	})
	got := b.refused(t, "/api/v1/consumer", http.StatusInternalServerError)
	require.NotContains(t, got["detail"], "a bug")
	lines := b.log.lines(t, "panicked")
	require.Len(t, lines, 1)
	require.Equal(t, "a bug", lines[0]["panic"])
	require.Contains(t, lines[0]["stack"], "admin")
	require.EqualValues(t, http.StatusInternalServerError, b.log.lines(t, "admin request")[1]["status"])
	b.show(t, "/api/v1/charges") // and the server goes on
}

func TestHalfAnAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.deps.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic("a bug")
		})
	})
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		b.server.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	})
}

func TestRequestsAreLoggedByTheirRoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.archive.charges = append(b.archive.charges, theCharge(t, 1))
	b.show(t, "/api/v1/charges?orderId=1")
	b.get(t, "/api/v1/events/0195500a-7c00-7000-8000-000000000001")
	b.get(t, "/secret-path?token="+operatorToken)
	b.ask(t, http.MethodGet, "/api/v1/charges", "wrong-token")
	b.ask(t, "PURGE", "/livez", "")
	var seen []string
	for _, line := range b.log.lines(t, "admin request") {
		require.Equal(t, "DEBUG", line["level"])
		require.Contains(t, line, "duration")
		seen = append(seen, fmt.Sprint(line["method"], " ", line["route"], " ", line["status"]))
	}
	require.Equal(t, []string{
		"GET /api/v1/charges 200", "GET /api/v1/events/{eventId} 404", "GET unmatched 404",
		"GET unmatched 401", "_OTHER unmatched 405",
	}, seen)
	for _, secret := range []string{operatorToken, readToken, "wrong-token", "secret-path", "777666555", "orderId=1"} {
		require.NotContains(t, b.log.String(), secret)
	}
}

func TestRequestsAreMeasured(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	b := setup(t, func(b *bundle) { b.deps.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)) })
	b.show(t, "/api/v1/charges")
	b.show(t, "/api/v1/charges")
	b.get(t, "/api/v1/no-such-thing")
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	require.Equal(t, "http.server.request.duration", got.ScopeMetrics[0].Metrics[0].Name)
	histogram, ok := got.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64])
	require.True(t, ok)
	counts := map[string]uint64{}
	for _, point := range histogram.DataPoints {
		route, _ := point.Attributes.Value(attribute.Key("http.route"))
		status, _ := point.Attributes.Value(attribute.Key("http.response.status_code"))
		counts[route.AsString()+" "+status.String()] = point.Count
	}
	require.Equal(t, map[string]uint64{"/api/v1/charges 200": 2, "unmatched 404": 1}, counts)
}
