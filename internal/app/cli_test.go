package app_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/app"
	"example.com/billing/internal/store/storetest"
	"example.com/billing/migrations"
)

// command runs billing as a process would, and returns what it said.
func command(t *testing.T, environ []string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = app.Main(t.Context(), app.Process{Args: args, Environ: environ, Out: &stdout, Err: &stderr, Version: "v-test"})
	return code, stdout.String(), stderr.String()
}

func required() []string {
	return []string{"KAFKA_BROKERS=localhost:9092", "DATABASE_URL=postgres://localhost/billing", "PAYMENT_URL=http://localhost:1"}
}

func TestWrongConfigurationIsToldAllAtOnce(t *testing.T) {
	t.Parallel()
	code, _, errs := command(t, []string{
		"KAFKA_BROKERS=nowhere", "DATABASE_URL=ftp://user:hidden@x", "CHARGE_BUDGET=soon", "MAX_IN_FLIGHT=0",
		"RETRY_HORIZON=30h", "OFFSET_STORE=etcd", "LOG_LEVEL=loud", "ADMIN_TOKEN_FILE=/does/not/exist",
		"DATABASE_MAX_CONNS=5", "KAFKA_SECURITY_PROTOCOL=carrier-pigeon", "ADMIN_INSECURE=perhaps", "ADMIN_ADDR=foo",
	}, "serve")
	require.Equal(t, 2, code)
	for _, complaint := range []string{
		`KAFKA_BROKERS: "nowhere" is not host:port`, "DATABASE_URL", "PAYMENT_URL is required", `CHARGE_BUDGET: "soon"`, "MAX_IN_FLIGHT must be above zero",
		"RETRY_HORIZON (30h0m0s) < PAYMENT_KEY_TTL (24h0m0s) is violated", "OFFSET_STORE=etcd: must be one of [kafka postgres]",
		"LOG_LEVEL=loud", "ADMIN_TOKEN_FILE", "DATABASE_MAX_CONNS (5) is violated", `KAFKA_SECURITY_PROTOCOL: "carrier-pigeon"`, `ADMIN_INSECURE: "perhaps"`, `ADMIN_ADDR: "foo"`,
	} {
		require.Contains(t, errs, complaint)
	}
	require.NotContains(t, errs, "hidden")
}

func TestEveryInequalityIsProvenAtTheStart(t *testing.T) {
	t.Parallel()
	for name, v := range map[string][]string{
		"one whole attempt":         {"PAYMENT_TIMEOUT=13s"},
		"charge in flight":          {"SHUTDOWN_TIMEOUT=15s"},
		"after the provider forgot": {"RETRY_HORIZON=24h"},
		"as long as it is retried":  {"DEDUP_RETENTION=20h"},
		"another's connection":      {"MAX_TRANSACTIONS=13"},
	} {
		code, _, errs := command(t, append(required(), v...), "serve")
		require.Equal(t, 2, code, name)
		require.Contains(t, errs, "is violated")
		require.Contains(t, errs, name)
	}
	s, err := app.Load(required())
	require.NoError(t, err)
	for _, i := range s.Inequalities() {
		require.True(t, i.Holds(), i.String())
	}
}

func TestTimeoutsThatFollowFromOthersAlwaysFit(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{"5s", "12s", "5m"} {
		s, err := app.Load(append(required(), "CHARGE_BUDGET="+budget, "SHUTDOWN_TIMEOUT=20m"))
		require.NoError(t, err)
		for _, i := range s.Inequalities() {
			require.True(t, i.Holds(), i.String())
		}
	}
}

func TestComplaintsNameTheVariable(t *testing.T) {
	t.Parallel()
	for given, complaint := range map[string]string{
		"BATCH_MAX=0":                     "BATCH_MAX: 0 is not in 1..10000",
		"RETENTION_MODE=burn":             "RETENTION_MODE=burn: must be one of [partition delete]",
		"RETENTION_RANGE=hour":            "RETENTION_RANGE=hour: must be one of [day week month]",
		"DEDUP_RETENTION=24024h":          "RETENTION_RANGE: a retention of 24024h0m0s takes 1001 ranges",
		"KAFKA_BROKERS=nowhere":           `KAFKA_BROKERS: "nowhere" is not host:port`,
		"KAFKA_SECURITY_PROTOCOL=carrier": "KAFKA_SECURITY_PROTOCOL: ",
		"PAYMENT_URL=ftp://x":             "PAYMENT_URL: must start with http",
		"OTEL_TRACES_EXPORTER=bogus":      `OTEL_TRACES_EXPORTER="bogus"`,
		"OTEL_METRICS_EXPORTER=bogus":     `OTEL_METRICS_EXPORTER="bogus"`,
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			code, _, errs := command(t, append(required(), given), "serve")
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, complaint)
		})
	}
}

func TestASecretMayComeFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("from-a-file\n"), 0o600))
	s, err := app.Load(append(required(), "PAYMENT_API_KEY_FILE="+file))
	require.NoError(t, err)
	require.Equal(t, "from-a-file", s.Payment.APIKey)

	_, err = app.Load(append(required(), "PAYMENT_API_KEY=a", "PAYMENT_API_KEY_FILE="+file))
	require.ErrorContains(t, err, "both set")
}

func TestTopicsThatWouldBeMixedUpAreRefused(t *testing.T) {
	t.Parallel()
	for want, vars := range map[string][]string{
		"KAFKA_DLQ_TOPIC=a: is the topic that is consumed":               {"KAFKA_TOPIC=a", "KAFKA_DLQ_TOPIC=a"},
		"KAFKA_EVENTS_TOPIC=orders.confirmed: is the topic that is cons": {"KAFKA_EVENTS_TOPIC=orders.confirmed"},
		"KAFKA_DLQ_TOPIC=b: is KAFKA_EVENTS_TOPIC, too":                  {"KAFKA_DLQ_TOPIC=b", "KAFKA_EVENTS_TOPIC=b"},
		`KAFKA_EVENTS_TOPIC: "no topic" is not a topic's name`:           {"KAFKA_EVENTS_TOPIC=no topic"},
		`KAFKA_DLQ_TOPIC: "no topic" is not a topic's name`:              {"KAFKA_DLQ_TOPIC=no topic"},
	} {
		code, _, errs := command(t, append(required(), vars...), "serve")
		require.Equal(t, 2, code, want)
		require.Contains(t, errs, want)
	}
	_, err := app.Load(append(required(), "KAFKA_DLQ_TOPIC=letters", "KAFKA_EVENTS_TOPIC=outcomes"))
	require.NoError(t, err)
}

func TestAnEmptyTopicSaysNotPublished(t *testing.T) {
	t.Parallel()
	s, err := app.Load(append(required(), "KAFKA_DLQ_TOPIC=", "KAFKA_EVENTS_TOPIC="))
	require.NoError(t, err)
	require.Empty(t, s.Kafka.DLQTopic)
	require.Empty(t, s.Kafka.EventsTopic)
}

// A slip in a name is told by every command that reads the settings, in the way that it tells other
// things, and refuses nothing; a value is never shown.
func TestEveryCommandWarnsOfAMisspeltVariable(t *testing.T) {
	t.Parallel()
	slips := []string{"PAYMENT_API_KYE=hidden", "PAYMENT_URI=http://localhost:1"}
	const want = "PAYMENT_API_KYE is not a setting; did you mean PAYMENT_API_KEY?"
	for _, args := range [][]string{
		{"serve"}, {"migrate", "status"}, {"health"}, {"retention", "run"}, {"offsets", "show"}, {"audit"}, {"replay", "--all", "--dry-run"},
	} {
		code, _, errs := command(t, slips, args...)
		require.NotZero(t, code, args)
		require.Contains(t, errs, want, args)
		require.NotContains(t, errs, "hidden")
	}
	_, _, errs := command(t, slips, "serve")
	require.Contains(t, errs, `"level":"WARN","msg":"`+want+`"`, "a line of the service's log")
	require.Contains(t, errs, "PAYMENT_URI is not a setting; did you mean PAYMENT_URL?")
	require.Contains(t, errs, "PAYMENT_URL is required", "beside the complaint that it explains")
	_, _, errs = command(t, append(slips, "LOG_FORMAT=text"), "serve")
	require.Contains(t, errs, `level=WARN msg="`+want+`"`)
	_, _, errs = command(t, append(slips, "LOG_FORMAT=loud"), "serve")
	require.Contains(t, errs, want, "also where the log's own settings are wrong")

	environ := []string{"DATABASE_URL=" + storetest.Empty(t), "DATABASE_MAX_CONN=5"}
	code, out, errs := command(t, environ, "migrate", "status")
	require.Zero(t, code, "it refuses nothing")
	require.Contains(t, out, "pending")
	require.Contains(t, errs, "DATABASE_MAX_CONN is not a setting; did you mean DATABASE_MAX_CONNS?")
}

func TestUsageErrorsExitWith2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"nonsense"}, {"serve", "now"}, {"serve", "--fast"}, {"migrate"}, {"migrate", "sideways"}, {"health", "x"}} {
		code, _, errs := command(t, required(), args...)
		require.Equal(t, 2, code, "%v: %s", args, errs)
		require.NotEmpty(t, errs)
	}
	code, out, _ := command(t, nil, "version")
	require.Zero(t, code)
	require.Contains(t, out, "billing v-test go1.")
	code, out, _ = command(t, nil, "--help")
	require.Zero(t, code)
	require.Contains(t, out, "migrate")
}

func TestHealthFailsWhereNobodyListens(t *testing.T) {
	t.Parallel()
	code, _, errs := command(t, []string{"ADMIN_ADDR=127.0.0.1:1"}, "health")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "127.0.0.1:1")
}

func TestMigrateGoesUpDownAndTellsWhereItIs(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + storetest.Empty(t)}
	code, out, _ := command(t, environ, "migrate", "status")
	require.Zero(t, code)
	require.Contains(t, out, "pending")
	code, out, _ = command(t, environ, "migrate", "up")
	require.Zero(t, code)
	require.Contains(t, out, "applied 00001_processed_event.sql")
	code, out, _ = command(t, environ, "migrate", "up")
	require.Zero(t, code)
	require.Contains(t, out, "nothing to apply")
	code, out, _ = command(t, environ, "migrate", "status")
	require.Zero(t, code)
	require.NotContains(t, out, "pending")
	code, out, _ = command(t, environ, "migrate", "down")
	require.Zero(t, code)
	files, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	require.Contains(t, out, "took back "+files[len(files)-1])
	code, _, errs := command(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x?connect_timeout=1"}, "migrate", "up")
	require.Equal(t, 1, code)
	require.NotEmpty(t, errs)
}
