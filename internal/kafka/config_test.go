package kafka

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// pem writes a file to be named as a certificate.
func pem(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.pem")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func validConfig() Config {
	cfg := DefaultConfig()
	cfg.Brokers, cfg.Topic, cfg.GroupID = []string{"localhost:9092", "[::1]:9093"}, "orders", "billing"
	return cfg
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	file := pem(t, "content")
	for _, test := range []struct {
		name string
		edit func(*Config)
		want string // empty: valid
	}{
		{"the defaults are valid", func(*Config) {}, ""},
		{"brokers are needed", func(c *Config) { c.Brokers = nil }, "KAFKA_BROKERS: none given"},
		{"a broker has a port", func(c *Config) { c.Brokers = []string{"kafka"} }, `"kafka" is not host:port`},
		{"a port is a number", func(c *Config) { c.Brokers = []string{"kafka:abc"} }, `"kafka:abc" is not host:port`},
		{"a port is a port", func(c *Config) { c.Brokers = []string{"kafka:65536"} }, `"kafka:65536" is not host:port`},
		{"no port is zero", func(c *Config) { c.Brokers = []string{"kafka:0"} }, `"kafka:0" is not host:port`},
		{"a topic has a name that brokers take", func(c *Config) { c.Topic = "a/b c" }, `KAFKA_TOPIC: "a/b c" is not a topic's name`},
		{"a topic is no folder", func(c *Config) { c.Topic = ".." }, `KAFKA_TOPIC: ".." is not a topic's name`},
		{"a topic is one topic, not a pattern", func(c *Config) { c.Topic = "^orders.*" }, `KAFKA_TOPIC: "^orders.*" is not`},
		{"a topic is short", func(c *Config) { c.Topic = strings.Repeat("a", 250) }, "is not a topic's name"},
		{"a topic may use all of the alphabet", func(c *Config) { c.Topic = "aZ09._-" }, ""},
		{"a group is text", func(c *Config) { c.GroupID = "\xff" }, `KAFKA_GROUP_ID: "\xff" is not printable text`},
		{"a group can be read", func(c *Config) { c.GroupID = "a\nb" }, `KAFKA_GROUP_ID: "a\nb" is not printable text`},
		{"a group may have any letters", func(c *Config) { c.GroupID = "Zahlungen für alle/2" }, ""},
		{"a topic is needed", func(c *Config) { c.Topic = "" }, "KAFKA_TOPIC: empty"},
		{"a group is needed", func(c *Config) { c.GroupID = "" }, "KAFKA_GROUP_ID: empty"},
		{"a session is not too short", func(c *Config) { c.SessionTimeout = time.Millisecond }, "KAFKA_SESSION_TIMEOUT: 1ms is below"},
		{"a session fits the poll interval", func(c *Config) { c.SessionTimeout = time.Hour }, "KAFKA_SESSION_TIMEOUT: 1h0m0s is above"},
		{"a batch holds something", func(c *Config) { c.BatchMax = 0 }, "BATCH_MAX: 0"},
		{"a transaction is needed", func(c *Config) { c.MaxTransactions = 0 }, "MAX_TRANSACTIONS: 0"},
		{"a lane holds records", func(c *Config) { c.LaneRecords = 0 }, "lane records: 0"},
		{"a lane holds bytes", func(c *Config) { c.LaneBytes = 0 }, "lane bytes: 0"},
		{"commits have an interval", func(c *Config) { c.CommitInterval = 0 }, "commit interval: 0s"},
		{"a drain takes time", func(c *Config) { c.DrainTimeout = 0 }, "drain timeout: 0s is not positive"},
		{
			"a drain fits the poll interval", func(c *Config) { c.DrainTimeout = 294 * time.Second },
			"drain timeout: 4m54s, with 2s to give up and 5s to commit, is not below the max poll interval of 5m0s",
		},
		{"partitions may be the broker's", func(c *Config) { c.TopicPartitions = 0 }, "topic partitions: 0"},
		{"replicas may be the broker's", func(c *Config) { c.TopicReplication = -2 }, "topic replication: -2"},
		{"a protocol is known", func(c *Config) { c.Security.Protocol = "tls" }, `"tls" is not plaintext`},
		{
			"sasl with tls is valid", func(c *Config) {
				c.Security = Security{
					Protocol: "SASL_SSL", SASLMechanism: "SCRAM-SHA-512", SASLUsername: "u", SASLPassword: "p",
					CAFile: file, CertFile: file, KeyFile: file,
				}
			}, "",
		},
		{
			"sasl has a mechanism", func(c *Config) {
				c.Security = Security{Protocol: "sasl_plaintext", SASLMechanism: "GSSAPI", SASLUsername: "u", SASLPassword: "p"}
			}, `KAFKA_SASL_MECHANISM: "GSSAPI"`,
		},
		{
			"sasl has a user", func(c *Config) {
				c.Security = Security{Protocol: "sasl_plaintext", SASLMechanism: "PLAIN", SASLPassword: "p"}
			}, "KAFKA_SASL_USERNAME: empty",
		},
		{"a password without sasl is a mistake", func(c *Config) { c.Security.SASLPassword = "p" }, "KAFKA_SASL_MECHANISM, _USERNAME, _PASSWORD: given, but"},
		{"a certificate without tls is a mistake", func(c *Config) { c.Security.CAFile = "f" }, "KAFKA_CA_FILE, _CERT_FILE, _KEY_FILE: given, but"},
		{
			"a certificate has a key", func(c *Config) { c.Security = Security{Protocol: "ssl", CertFile: file} },
			"KAFKA_CERT_FILE and KAFKA_KEY_FILE: both or none",
		},
		{
			"a certificate can be read", func(c *Config) { c.Security = Security{Protocol: "ssl", CAFile: file + ".not"} },
			"KAFKA_CA_FILE: open " + file + ".not: no such file",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := validConfig()
			test.edit(&cfg)
			err := cfg.Validate()
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "kafka: ")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, 1, strings.Count(err.Error(), "kafka: "), "one mistake, one complaint: %s", err)
		})
	}

	t.Run("all complaints come at once, without the password", func(t *testing.T) {
		t.Parallel()
		err := Config{Security: Security{SASLPassword: "hunter2"}}.Validate()
		for _, want := range []string{"KAFKA_BROKERS", "KAFKA_TOPIC", "KAFKA_GROUP_ID", "BATCH_MAX", "lane bytes", "KAFKA_SASL_"} {
			require.ErrorContains(t, err, want)
		}
		require.NotContains(t, err.Error(), "hunter2")
	})
}

func TestNewTellsWhatOnlyTheClientCanJudge(t *testing.T) {
	t.Parallel()
	cfg := validConfig()
	cfg.Security = Security{Protocol: "ssl", CAFile: pem(t, "no certificate")}
	_, err := New(cfg, nil, slog.New(slog.DiscardHandler), Telemetry{}, domain.SystemClock{})
	require.ErrorContains(t, err, "ssl.ca.location")
	_, err = New(Config{}, nil, slog.New(slog.DiscardHandler), Telemetry{}, domain.SystemClock{})
	require.ErrorContains(t, err, "KAFKA_BROKERS")
}

// The client refuses a name or value that it does not know, and takes all of ours.
func TestEverySettingIsKnownToTheClient(t *testing.T) {
	t.Parallel()
	for _, security := range []Security{
		{},
		{Protocol: "sasl_plaintext", SASLMechanism: "SCRAM-SHA-256", SASLUsername: "u", SASLPassword: "p"},
		{Protocol: "SASL_SSL", SASLMechanism: "PLAIN", SASLUsername: "u", SASLPassword: "p"},
	} {
		cfg := validConfig()
		cfg.Security = security
		consumer, err := New(cfg, nil, slog.New(slog.DiscardHandler), Telemetry{}, domain.SystemClock{})
		require.NoError(t, err)
		require.NoError(t, consumer.Close())
	}
}
