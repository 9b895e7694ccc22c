package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"example.com/billing/internal/payment/paymenttest"
)

func (s *service) tell(path, who, body string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.Addr+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Operator", who)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestAnOperatorPausesTheServiceAndLetsItGoOn(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testAnOperatorPausesTheServiceAndLetsItGoOn)
}

func testAnOperatorPausesTheServiceAndLetsItGoOn(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 2, paymenttest.Faults{})
	s := w.start(map[string]string{"PAYMENT_API_KEY": "hunter2"})
	w.eventually("ready", func() bool { return s.get("/readyz", nil) == http.StatusOK })
	require.Equal(t, http.StatusOK, s.tell("/api/v1/consumer/pause", "ann", `{"reason":"the provider moves"}`))
	w.orders(20, 2)
	var shown struct {
		Paused bool
		Queued int
		Pauses []struct{ By, Reason string }
	}
	w.eventually("all wait", func() bool { return s.get("/api/v1/consumer", &shown) == http.StatusOK && shown.Queued == 20 })
	require.True(t, shown.Paused)
	require.Equal(t, []struct{ By, Reason string }{{"ann", "the provider moves"}}, shown.Pauses)
	w.eventually("health says so", func() bool {
		return s.component("kafka") == component{"kafka", "warn", "intake is paused by ann: the provider moves"}
	})
	require.Equal(t, http.StatusOK, s.get("/readyz", nil), "it is as somebody wants it")
	require.Zero(t, w.count(`SELECT count(*) FROM processed_event`))

	require.Equal(t, http.StatusOK, s.tell("/api/v1/consumer/resume", "ann", ""))
	w.settled()
	require.EqualValues(t, 20, s.stats().Captured)
}

func TestTheEffectiveConfigurationHoldsNoSecret(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	s := w.start(map[string]string{"PAYMENT_API_KEY": "hunter2", "ADMIN_TOKEN": "hunter3", "BATCH_MAX": "17"})
	var shown struct {
		Settings     []struct{ Name, Value string }
		Inequalities []struct {
			Left  string
			Holds bool
		}
	}
	require.Equal(t, http.StatusOK, s.get("/api/v1/config", &shown))
	values := map[string]string{}
	for _, setting := range shown.Settings {
		values[setting.Name] = setting.Value
	}
	require.Equal(t, "17", values["BATCH_MAX"])
	require.Equal(t, strings.Join(w.brokers, ","), values["KAFKA_BROKERS"])
	require.Equal(t, "168h0m0s", values["DEDUP_RETENTION"])
	require.Equal(t, "(given)", values["PAYMENT_API_KEY"])
	require.Equal(t, "(given)", values["ADMIN_TOKEN"])
	require.Empty(t, values["ADMIN_READ_TOKEN"])
	require.NotContains(t, values["DATABASE_URL"], "?")
	require.NotEmpty(t, shown.Inequalities)
	for _, i := range shown.Inequalities {
		require.True(t, i.Holds, i.Left)
	}
	w.eventually("logged", func() bool { return strings.Contains(s.Logs.String(), "safety inequality") })
	require.Contains(t, s.Logs.String(), `"batch_max":"17"`)
	require.NotContains(t, s.Logs.String(), "hunter")
}

func TestATopicThatOutlivesDeduplicationIsAWarning(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	set := func(ms string) {
		_, err := w.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &ms}}, w.topic)
		require.NoError(t, err)
		// Brokers take a while to spread it, and are asked once.
		w.eventually("the topic's retention is set", func() bool {
			all, err := w.admin.DescribeTopicConfigs(t.Context(), w.topic)
			require.NoError(t, err)
			topic, err := all.On(w.topic, nil)
			require.NoError(t, err)
			return slices.ContainsFunc(topic.Configs, func(c kadm.Config) bool {
				return c.Key == "retention.ms" && c.MaybeValue() == ms
			})
		})
	}
	for ms, want := range map[string]component{
		"604800000": {"topic", "ok", ""}, // 168h, as DEDUP_RETENTION
		"604800001": {"topic", "warn", "keeps records for 168h0m0.001s, longer than DEDUP_RETENTION (168h0m0s)"},
		"-1":        {"topic", "warn", "keeps records for ever, DEDUP_RETENTION is 168h0m0s"},
	} {
		set(ms)
		s := w.start(nil)
		w.eventually(ms, func() bool { return s.component("topic") == want && s.get("/readyz", nil) == http.StatusOK })
		s.Stop()
	}
}
