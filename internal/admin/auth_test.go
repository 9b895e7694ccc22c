package admin_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
)

// closedPaths are the routes that take a token, and one that does not exist.
var closedPaths = []string{
	"/openapi.yaml", "/api/v1/dedup/stats", "/api/v1/dedup/series", "/api/v1/dedup/duplicates", "/api/v1/events/0195500a-7c00-7000-8000-000000000001", "/api/v1/charges",
	"/api/v1/dead-letters", "/api/v1/dead-letters/1", "/api/v1/dead-letters/replay", "/api/v1/dead-letters/1/replay", "/api/v1/dead-letters/1/discard",
	"/api/v1/consumer", "/api/v1/consumer/pause", "/api/v1/consumer/resume", "/api/v1/config", "/", "/api/v1/unknown", "/livez/", "/%6civez",
}

func TestTheTestsKnowEveryRoute(t *testing.T) {
	t.Parallel()
	known := append(slices.Clone(openPaths), closedPaths...)
	for path := range theContract(t).doc.Paths.Map() {
		path = strings.NewReplacer("{eventId}", "0195500a-7c00-7000-8000-000000000001", "{id}", "1").Replace(path)
		require.Contains(t, known, path)
	}
}

func TestEveryRouteAgainstEveryToken(t *testing.T) {
	t.Parallel()
	type doors struct{ read, write bool }
	for name, test := range map[string]struct {
		cfg    admin.Config
		header []string
		want   doors
	}{
		"no token":                   {header: nil},
		"an empty token":             {header: []string{"Bearer "}},
		"a scheme alone":             {header: []string{"Bearer"}},
		"a wrong token":              {header: []string{"Bearer wrong"}},
		"a token cut short":          {header: []string{"Bearer " + operatorToken[:8]}},
		"a token and more":           {header: []string{"Bearer " + operatorToken + " x"}},
		"another scheme":             {header: []string{"Basic " + operatorToken}},
		"no scheme":                  {header: []string{operatorToken}},
		"two tokens":                 {header: []string{"Bearer " + operatorToken, "Bearer " + operatorToken}},
		"the read token":             {header: []string{"Bearer " + readToken}, want: doors{read: true}},
		"the operator token":         {header: []string{"Bearer " + operatorToken}, want: doors{read: true, write: true}},
		"a scheme in lower case":     {header: []string{"bearer " + operatorToken}, want: doors{read: true, write: true}},
		"no tokens are set":          {cfg: admin.Config{Addr: ":0"}, header: []string{"Bearer "}},
		"no tokens set, none sent":   {cfg: admin.Config{Addr: ":0"}},
		"only a read token is set":   {cfg: admin.Config{Addr: ":0", ReadToken: readToken}, header: []string{"Bearer " + operatorToken}},
		"insecure and no token":      {cfg: admin.Config{Addr: ":0", Insecure: true}, want: doors{read: true, write: true}},
		"insecure with a read token": {cfg: admin.Config{Addr: ":0", Insecure: true, ReadToken: readToken}, header: []string{"Bearer " + readToken}, want: doors{read: true, write: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(b *bundle) {
				if test.cfg.Addr != "" {
					b.cfg = test.cfg
				}
			})
			send := func(method, path string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
				r.Header["Authorization"] = test.header
				return b.send(t, r)
			}
			for _, path := range openPaths {
				require.Equal(t, http.StatusOK, send(http.MethodGet, path).Code, path)
				require.Equal(t, http.StatusOK, send(http.MethodHead, path).Code, path)
				require.Equal(t, http.StatusMethodNotAllowed, send(http.MethodPost, path).Code, path)
			}
			for _, path := range closedPaths {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
					refused(t, send(method, path), !test.want.read, http.StatusUnauthorized)
				}
				for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "PURGE"} {
					status := http.StatusUnauthorized
					if test.want.read {
						status = http.StatusForbidden
					}
					refused(t, send(method, path), !test.want.write, status)
				}
			}
		})
	}
}

// refused says whether the guard answered, and with what.
func refused(t *testing.T, got *httptest.ResponseRecorder, want bool, status int) {
	t.Helper()
	byGuard := got.Code == http.StatusUnauthorized || got.Code == http.StatusForbidden
	require.Equal(t, want, byGuard, got.Code)
	if byGuard {
		require.Equal(t, status, got.Code)
	}
	challenge := ""
	if got.Code == http.StatusUnauthorized {
		challenge = `Bearer realm="billing"`
	}
	require.Equal(t, challenge, got.Header().Get("WWW-Authenticate"))
}

func TestBadSettingsAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := admin.New(admin.Config{Token: "with space", ReadToken: strings.Repeat("x", 1025), MaxQueries: -1},
		admin.Deps{Checks: []admin.Check{{}}})
	for _, complaint := range []string{
		"ADMIN_ADDR", "ADMIN_TOKEN: only printable", "ADMIN_READ_TOKEN: only printable", "queries",
		"an archive and an operator", "a consumer", "metrics and its specification", "a clock and a logger", "a name and a function for each check",
	} {
		require.ErrorContains(t, err, complaint)
	}
	require.NotContains(t, err.Error(), "with space", "a token is a secret, a bad one too")
	same := admin.Config{Addr: ":0", Token: "t", ReadToken: "t"}
	require.ErrorContains(t, same.Validate(), "ADMIN_READ_TOKEN: must differ")
}
