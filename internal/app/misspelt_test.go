package app

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEditsAreLettersPutInTakenOutReplacedOrSwapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "ab", 2},
		{"BATCH_MAX", "BATCH_MAX", 0},
		{"BATCH_MX", "BATCH_MAX", 1},
		{"BATCHH_MAX", "BATCH_MAX", 1},
		{"BATCH-MAX", "BATCH_MAX", 1},
		{"BATHC_MAX", "BATCH_MAX", 1},
		{"BATHC_MXA", "BATCH_MAX", 2},
		{"MAX_BATCH", "BATCH_MAX", 8},
		{"BATCH", "BATCH_MAX", 3}, // not compared
	} {
		require.Equal(t, c.want, edits(c.a, c.b), "%s, %s", c.a, c.b)
		require.Equal(t, c.want, edits(c.b, c.a), "%s, %s", c.b, c.a)
	}
}

func TestAMisspeltVariableIsToldAndNoneThatIsSomebodyElses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    []misspelling
	}{
		"a letter too few":        {[]string{"PAYMENT_TIMOUT=5s"}, []misspelling{{"PAYMENT_TIMOUT", "PAYMENT_TIMEOUT"}}},
		"two letters swapped":     {[]string{"DEDUP_RETENTOIN=1h"}, []misspelling{{"DEDUP_RETENTOIN", "DEDUP_RETENTION"}}},
		"lower case":              {[]string{"dedup_retention=1h"}, []misspelling{{"dedup_retention", "DEDUP_RETENTION"}}},
		"of a secret's file":      {[]string{"ADMIN_TOKEN_FIL=/x"}, []misspelling{{"ADMIN_TOKEN_FIL", "ADMIN_TOKEN_FILE"}}},
		"of OpenTelemetry":        {[]string{"OTEL_EXPORTER_OLTP_ENDPOINT=x"}, []misspelling{{"OTEL_EXPORTER_OLTP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}}},
		"the nearest one":         {[]string{"KAFKA_CERT_FIL=x"}, []misspelling{{"KAFKA_CERT_FIL", "KAFKA_CERT_FILE"}}},
		"in order":                {[]string{"PAYMENT_URI=x", "DATABASE_URI=x"}, []misspelling{{"DATABASE_URI", "DATABASE_URL"}, {"PAYMENT_URI", "PAYMENT_URL"}}},
		"a setting":               {[]string{"PAYMENT_TIMEOUT=5s"}, nil},
		"the setting is given":    {[]string{"PAYMENT_TIMOUT=5s", "PAYMENT_TIMEOUT=6s"}, nil},
		"it is given, and empty":  {[]string{"KAFKA_DLQ_TOPICS=x", "KAFKA_DLQ_TOPIC="}, nil},
		"Kafka's own tools":       {[]string{"KAFKA_HEAP_OPTS=x", "KAFKA_OPTS=x", "KAFKA_LOG4J_OPTS=x", "KAFKA_JMX_PORT=1", "KAFKA_ADVERTISED_LISTENERS=x"}, nil},
		"other software":          {[]string{"DATABASE_HOST=x", "PATH=x", "HOME=x", "LOG_DIR=x", "ADMIN_EMAIL=x", "PGHOST=x", "OTEL_LOGS_EXPORTER=x", "OTEL_TRACES_SAMPLER=x"}, nil},
		"no variable":             {[]string{"", "=", "PAYMENT_TIMOUT"}, []misspelling{{"PAYMENT_TIMOUT", "PAYMENT_TIMEOUT"}}},
		"three slips are too far": {[]string{"PAYMNT_TIMOT=5s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, misspelt(test.environ))
		})
	}
}

func TestLookingForMisspeltVariablesIsBounded(t *testing.T) {
	t.Parallel()
	var environ []string
	for n := range 20 {
		environ = append(environ, "PAYMENT_TIMEOUT"+strconv.Itoa(n)+"=5s")
	}
	require.Len(t, misspelt(environ), maxMisspelt)
	environ = append(make([]string, maxVariables), "PAYMENT_TIMOUT=5s")
	require.Empty(t, misspelt(environ))
}
