package kafka

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/billing/internal/domain"
)

// Bounds that are facts of this package rather than choices of an operator.
const (
	// maxNameBytes bounds the names of topic and group, as brokers bound those of topics.
	maxNameBytes = 249
	// cancelGrace is how long a batch that outlived DrainTimeout may take to give
	// up once it has been cancelled, before its lane is abandoned.
	cancelGrace = 2 * time.Second
	// flushTimeout bounds the wait for the last commit of revoked partitions.
	flushTimeout = 5 * time.Second
	// closeTimeout bounds leaving the group and closing the client.
	closeTimeout = 10 * time.Second
	// fatalGrace is how long batches may take to end after a fatal error.
	fatalGrace = 3 * time.Second
	// fetchBytes bounds what one partition adds to one fetch; a batch that is larger
	// arrives whole all the same. What was fetched ahead is thrown away when the
	// partition is paused, and fetched again: with 4 MiB every record of a backlog
	// was fetched 14 times, with this twice, at a third less CPU per record.
	fetchBytes = 128 << 10
	// prefetchKiB bounds what the client holds ahead of the lanes, all partitions together.
	prefetchKiB = 8 << 10
	// prefetchRecords is how many records per partition the client tries to have ready: enough to
	// fill half a lane while it is resumed.
	prefetchRecords = 1_000
)

// Config says which records are consumed, and within which bounds.
type Config struct {
	// Brokers are host:port addresses; at least one.
	Brokers []string
	// ClientID names this process in the broker's logs. Default "billing".
	ClientID string
	// Security is how to speak to the brokers. Zero: plaintext.
	Security Security

	// Topic and GroupID are what is consumed, and as whom.
	Topic   string
	GroupID string
	// SessionTimeout is after how long of silence the group gives our partitions
	// away. Brokers accept 6s to 30m unless configured otherwise. Default 10s.
	SessionTimeout time.Duration
	// MaxPollInterval is how long the poll loop may be away (it drains in the
	// rebalance callback) before the group gives our partitions away. Default 5m.
	MaxPollInterval time.Duration

	// BatchMax is how many records one call of Biller.Bill may hold. Default 256.
	BatchMax int
	// MaxTransactions is how many batches may be in flight at once, over all
	// partitions: each holds a database connection. Default 12.
	MaxTransactions int
	// LaneRecords and LaneBytes (keys, values and headers) bound what waits in one
	// partition's queue: at either its partition is paused, below half of both it is
	// resumed. What has arrived by then may overrun them by one record. A record counts until it
	// and all before it are durable. Defaults 2048, which is as many as a lane can have
	// in flight, and 8 MiB: half of it is several batches, which keep the lane busy
	// while fetching starts again.
	LaneRecords int
	LaneBytes   int

	// CommitInterval is the least time between two offset commits; the last one
	// before a revocation or the end does not wait for it. Default 100ms.
	CommitInterval time.Duration
	// DrainTimeout bounds the wait for batches in flight when partitions are revoked or the
	// service stops. It has to cover one charge budget and one commit. Default 20s.
	DrainTimeout time.Duration

	// Positions keep the positions of partitions outside of Kafka: what they hold wins, and
	// offsets are committed to Kafka for tools only. Default nil: Kafka alone keeps them.
	Positions Positions

	// Faults is told where the flow stands, by tests. Default nil: nobody.
	Faults domain.Faults

	// CreateTopics lets EnsureTopics create what is missing. Default true.
	CreateTopics bool
	// TopicPartitions and TopicReplication are used for created topics. Default
	// -1: the broker's num.partitions and default.replication.factor decide,
	// which an operator has set for this cluster and we cannot know.
	TopicPartitions  int
	TopicReplication int
}

// Security holds the TLS and SASL settings of a connection.
type Security struct {
	// Protocol is plaintext, ssl, sasl_plaintext or sasl_ssl, in any case. Empty: plaintext.
	Protocol string
	// SASLMechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; with a sasl protocol only.
	SASLMechanism string
	SASLUsername  string
	SASLPassword  string
	// CAFile is a PEM file of the authorities to trust; empty: the system's.
	CAFile string
	// CertFile and KeyFile are our own certificate, both or none.
	CertFile string
	KeyFile  string
}

// DefaultConfig returns the defaults stated at the fields. Brokers, Topic and
// GroupID are left to the caller.
func DefaultConfig() Config {
	return Config{
		ClientID:         "billing",
		SessionTimeout:   10 * time.Second,
		MaxPollInterval:  5 * time.Minute,
		BatchMax:         256,
		MaxTransactions:  12,
		LaneRecords:      2048,
		LaneBytes:        8 << 20,
		CommitInterval:   100 * time.Millisecond,
		DrainTimeout:     20 * time.Second,
		CreateTopics:     true,
		TopicPartitions:  -1,
		TopicReplication: -1,
	}
}

// complaints collects everything that is wrong, so that it is told at once.
type complaints []error

func (c *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf("kafka: "+format, args...))
	}
}

// readable complains about a file that cannot be opened: the client would only say
// "system lib".
func (c *complaints) readable(what, path string) {
	if path == "" {
		return
	}
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		*c = append(*c, fmt.Errorf("kafka: %s: %w", what, err))
		return
	}
	file.Close()
}

// Validate returns all complaints joined, or nil; those about what an operator sets
// name its variable. It opens the files that are named.
func (c Config) Validate() error {
	var wrong complaints
	wrong.unless(len(c.Brokers) > 0, "KAFKA_BROKERS: none given")
	for _, broker := range c.Brokers {
		_, port, err := net.SplitHostPort(broker)
		number, notPort := strconv.ParseUint(port, 10, 16)
		wrong.unless(err == nil && notPort == nil && number > 0, "KAFKA_BROKERS: %q is not host:port", broker)
	}
	wrong.unless(c.Topic != "", "KAFKA_TOPIC: empty")
	wrong.unless(c.Topic == "" || validTopic(c.Topic),
		"KAFKA_TOPIC: %q is not a topic's name: 1 to %d of a-z, A-Z, 0-9, '.', '_' and '-'", c.Topic, maxNameBytes)
	wrong.unless(c.GroupID != "", "KAFKA_GROUP_ID: empty")
	wrong.unless(validGroup(c.GroupID), "KAFKA_GROUP_ID: %q is not printable text of at most %d bytes", c.GroupID, maxNameBytes)
	wrong.unless(c.SessionTimeout >= 100*time.Millisecond, "KAFKA_SESSION_TIMEOUT: %s is below 100ms", c.SessionTimeout)
	wrong.unless(c.SessionTimeout <= c.MaxPollInterval,
		"KAFKA_SESSION_TIMEOUT: %s is above the max poll interval of %s", c.SessionTimeout, c.MaxPollInterval)
	wrong.unless(c.BatchMax >= 1 && c.BatchMax <= 10_000, "BATCH_MAX: %d is not in 1..10000", c.BatchMax)
	wrong.unless(c.MaxTransactions >= 1 && c.MaxTransactions <= 1000,
		"MAX_TRANSACTIONS: %d is not in 1..1000", c.MaxTransactions)
	wrong.unless(c.LaneRecords >= 2, "lane records: %d is below 2", c.LaneRecords)
	wrong.unless(c.LaneBytes >= 2, "lane bytes: %d is below 2", c.LaneBytes)
	wrong.unless(c.CommitInterval > 0, "commit interval: %s is not positive", c.CommitInterval)
	wrong.unless(c.DrainTimeout > 0, "drain timeout: %s is not positive", c.DrainTimeout)
	wrong.unless(c.DrainTimeout+cancelGrace+flushTimeout < c.MaxPollInterval,
		"drain timeout: %s, with %s to give up and %s to commit, is not below the max poll interval of %s",
		c.DrainTimeout, cancelGrace, flushTimeout, c.MaxPollInterval)
	wrong.unless(c.TopicPartitions == -1 || c.TopicPartitions > 0, "topic partitions: %d", c.TopicPartitions)
	wrong.unless(c.TopicReplication == -1 || c.TopicReplication > 0, "topic replication: %d", c.TopicReplication)
	c.Security.complain(&wrong)
	return errors.Join(wrong...)
}

// validTopic reports whether brokers take the name. It keeps out what begins with ^,
// too: to the client that is a pattern over many topics, whose partitions we would mix up.
func validTopic(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(name) <= maxNameBytes && name != "." && name != ".." && strings.Trim(name, allowed) == ""
}

// validGroup reports whether the name can be stored: it stands in rows of the database.
func validGroup(name string) bool {
	printable := func(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }
	return len(name) <= maxNameBytes && !strings.ContainsFunc(name, func(r rune) bool { return !printable(r) })
}

func (s Security) complain(wrong *complaints) {
	sasl, tls := false, false
	switch strings.ToLower(s.Protocol) {
	case "", "plaintext":
	case "ssl":
		tls = true
	case "sasl_plaintext":
		sasl = true
	case "sasl_ssl":
		sasl, tls = true, true
	default:
		wrong.unless(false, "KAFKA_SECURITY_PROTOCOL: %q is not plaintext, ssl, sasl_plaintext or sasl_ssl", s.Protocol)
		return
	}
	if sasl {
		switch s.SASLMechanism {
		case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		default:
			wrong.unless(false, "KAFKA_SASL_MECHANISM: %q is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.SASLMechanism)
		}
		wrong.unless(s.SASLUsername != "", "KAFKA_SASL_USERNAME: empty")
		wrong.unless(s.SASLPassword != "", "KAFKA_SASL_PASSWORD: empty")
	} else {
		wrong.unless(s.SASLMechanism == "" && s.SASLUsername == "" && s.SASLPassword == "",
			"KAFKA_SASL_MECHANISM, _USERNAME, _PASSWORD: given, but KAFKA_SECURITY_PROTOCOL %q does not use it", s.Protocol)
	}
	wrong.unless(tls || (s.CAFile == "" && s.CertFile == "" && s.KeyFile == ""),
		"KAFKA_CA_FILE, _CERT_FILE, _KEY_FILE: given, but KAFKA_SECURITY_PROTOCOL %q does not use them", s.Protocol)
	wrong.unless((s.CertFile == "") == (s.KeyFile == ""), "KAFKA_CERT_FILE and KAFKA_KEY_FILE: both or none")
	if tls {
		wrong.readable("KAFKA_CA_FILE", s.CAFile)
		wrong.readable("KAFKA_CERT_FILE", s.CertFile)
		wrong.readable("KAFKA_KEY_FILE", s.KeyFile)
	}
}
