package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
)

// lever keeps what it was told.
type lever struct{ told []string }

func (l *lever) Pause(by, reason string) { l.told = append(l.told, "pause|"+by+"|"+reason) }
func (l *lever) Resume(by string)        { l.told = append(l.told, "resume|"+by) }

// postAs sends a body to a route, as an operator or as a reader.
func (b *bundle) postAs(t *testing.T, path, token, who, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if who != "" {
		r.Header.Set("X-Operator", who)
	}
	return b.send(t, r)
}

func TestAnOperatorPausesAndResumesIntake(t *testing.T) {
	t.Parallel()
	l := &lever{}
	b := setup(t, func(b *bundle) {
		b.deps.Intake = l
		b.deps.Consumer = func() admin.ConsumerStatus {
			return admin.ConsumerStatus{Topic: "orders", Group: testGroup, Pauses: []admin.Pause{{By: "ann", Reason: "the provider moves", Since: noon}}}
		}
	})
	got := b.postAs(t, "/api/v1/consumer/pause", operatorToken, "ann", `{"reason":"the provider moves"}`)
	require.Equal(t, http.StatusOK, got.Code)
	require.Equal(t, []any{map[string]any{"by": "ann", "reason": "the provider moves", "since": "2026-03-01T12:00:30Z"}},
		as[map[string]any](t, decode(t, got))["pauses"], "the answer shows what came of it")
	require.Equal(t, http.StatusOK, b.postAs(t, "/api/v1/consumer/pause", operatorToken, "", "").Code)
	require.Equal(t, http.StatusOK, b.postAs(t, "/api/v1/consumer/resume", operatorToken, "bob", "{}").Code)
	require.Equal(t, []string{"pause|ann|the provider moves", "pause|operator token|", "resume|bob"}, l.told)
	require.Len(t, b.log.lines(t, "pause asked for"), 2)

	require.Equal(t, http.StatusForbidden, b.postAs(t, "/api/v1/consumer/pause", readToken, "", "").Code)
	require.Equal(t, http.StatusUnauthorized, b.postAs(t, "/api/v1/consumer/resume", "stranger", "", "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, b.ask(t, http.MethodGet, "/api/v1/consumer/pause", operatorToken).Code)
	require.Len(t, l.told, 3)
}

func TestAPauseWithAnOddReasonIsRefused(t *testing.T) {
	t.Parallel()
	l := &lever{}
	b := setup(t, func(b *bundle) { b.deps.Intake = l })
	for name, test := range map[string]struct{ who, body string }{
		"no JSON":             {"", "because"},
		"a list":              {"", "[]"},
		"another member":      {"", `{"why":"x"}`},
		"something behind it": {"", `{} {}`},
		"a reason of lines":   {"", `{"reason":"a\nb"}`},
		"a reason of 201":     {"", `{"reason":"` + strings.Repeat("x", 201) + `"}`},
		"a name that is odd":  {"a\tb", ""},
		"a name of 101":       {strings.Repeat("x", 101), ""},
	} {
		for _, path := range []string{"/api/v1/consumer/pause", "/api/v1/consumer/resume"} {
			got := b.postAs(t, path, operatorToken, test.who, test.body)
			require.Equal(t, http.StatusBadRequest, got.Code, "%s: %s", name, got.Body)
			asProblem(t, got)
		}
	}
	require.Empty(t, l.told)
}

func TestTheConfigurationIsShown(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) {
		b.deps.Config = func() admin.ConfigStatus {
			return admin.ConfigStatus{
				Settings: []admin.Setting{{Name: "BATCH_MAX", Value: "256"}, {Name: "ADMIN_TOKEN", Value: "(given)", Secret: true}},
				Inequalities: []admin.Inequality{{
					Left: "RETRY_HORIZON", LeftIs: "20h0m0s", Relation: "<", Right: "PAYMENT_KEY_TTL", RightIs: "24h0m0s",
					Holds: true, Waived: true, Guarantee: "a key is not sent after the provider forgot it",
				}},
			}
		}
	})
	require.Equal(t, map[string]any{
		"settings": []any{
			map[string]any{"name": "BATCH_MAX", "value": "256", "secret": false},
			map[string]any{"name": "ADMIN_TOKEN", "value": "(given)", "secret": true},
		},
		"inequalities": []any{map[string]any{
			"left": "RETRY_HORIZON", "left_is": "20h0m0s", "relation": "<", "right": "PAYMENT_KEY_TTL", "right_is": "24h0m0s",
			"holds": true, "waived": true, "guarantee": "a key is not sent after the provider forgot it",
		}},
	}, b.show(t, "/api/v1/config"))
	require.Equal(t, "x", b.refused(t, "/api/v1/config?x=1", http.StatusBadRequest)["parameter"])
}
