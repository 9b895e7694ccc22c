package run

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/billing/internal/payment/paymenttest"
)

// Kinds of broker.
const (
	KafkaEmbedded = "embedded"
	KafkaApache   = "apache"
)

// Bounds of a run.
const (
	maxInstances  = 16
	maxKills      = 1000
	maxJoins      = 1000
	maxPartitions = 1000
)

// Options are what a run is made of.
type Options struct {
	// Billing is the path of the billing binary.
	Billing string
	// Kafka is KafkaEmbedded or KafkaApache; Brokers, a comma list, takes an existing one instead.
	Kafka   string
	Brokers string
	// DatabaseURL takes an existing, empty database; empty: a private server.
	DatabaseURL string
	Topic       string
	Group       string
	Partitions  int32

	Source    Source
	Instances int
	// Kills is how often an instance is killed with -9 and started again, at moments that the seed draws.
	Kills int
	// Joins is how often an instance is told to end, or another one joins, or both, at moments that the seed draws.
	Joins int
	// Backlog sends the orders as fast as they go: in a run with joins, records wait in every partition whenever one changes hands.
	Backlog    bool
	Faults     paymenttest.Faults
	FaultsText string

	// Timeout bounds the work, from the first part started to the last order finished; 0: not bounded.
	Timeout time.Duration
	// BreakOff, when it is closed, ends a run at once and unjudged; nil: never.
	BreakOff <-chan struct{}
	// Keep keeps the run's folder: logs and data.
	Keep bool
	// Env are further NAME=value for billing; they win over the run's own.
	Env []string
	// Environ is the sandbox's environment, of which billing gets the part that is no setting of its own.
	Environ []string
}

// Validate returns all complaints, joined.
func (o *Options) Validate() error {
	var complaints []error
	complain := func(bad bool, format string, args ...any) {
		if bad {
			complaints = append(complaints, fmt.Errorf(format, args...))
		}
	}
	complain(o.Kafka != KafkaEmbedded && o.Kafka != KafkaApache, "--kafka %s: want %s or %s", o.Kafka, KafkaEmbedded, KafkaApache)
	complain(o.Instances < 1 || o.Instances > maxInstances, "--instances %d: want 1 to %d", o.Instances, maxInstances)
	complain(o.Kills < 0 || o.Kills > maxKills, "--kills %d: want 0 to %d", o.Kills, maxKills)
	complain(o.Joins < 0 || o.Joins > maxJoins, "--joins %d: want 0 to %d", o.Joins, maxJoins)
	complain(o.Joins > 0 && o.Instances < 2, "--joins %d: needs --instances 2 or more, of which one stays", o.Joins)
	complain(o.Joins > 0 && o.Source.Records > 0 && o.Source.Records < minTurn*o.Joins,
		"--joins %d: needs --records %d or more, so that each meets some", o.Joins, minTurn*o.Joins)
	complain(o.Backlog && (o.Joins == 0 || o.Source.Records == 0 || o.Source.Rate > 0), "--backlog: needs --once and --joins, and no --rate")
	complain(o.Partitions < 1 || o.Partitions > maxPartitions, "--partitions %d: want 1 to %d", o.Partitions, maxPartitions)
	complain(o.Timeout < 0, "--timeout %s: below zero", o.Timeout)
	complain(o.Topic == "" || o.Group == "", "--topic and --group must not be empty")
	for _, pair := range o.Env {
		name, _, found := strings.Cut(pair, "=")
		complain(!found || name == "", "--env %q: want NAME=value", pair)
	}
	if info, err := os.Stat(o.Billing); err != nil {
		complain(true, "--billing: %w (`make build` makes it)", err)
	} else {
		complain(info.IsDir(), "--billing %s: a folder", o.Billing)
	}
	return errors.Join(append(complaints, o.Source.Validate())...)
}

// setup is what the report says of the options.
func (o *Options) setup() Setup {
	broker := o.Kafka
	if o.Brokers != "" {
		broker = o.Brokers
	}
	return Setup{
		Broker: broker, Instances: o.Instances, Partitions: o.Partitions, Seed: o.Source.Seed, Faults: o.FaultsText,
		Faulty: faulty(o.Faults), IgnoreKeys: o.Faults.IgnoreKeys, Kills: o.Kills, Joins: o.Joins, Backlog: o.Backlog,
	}
}

// slowest is the longest latency that can not be taken for a failure.
const slowest = paymenttest.Duration(time.Second)

// faulty reports whether the provider may be asked twice for reasons of its own.
func faulty(f paymenttest.Faults) bool {
	l := f.Latency
	return len(f.Rules) > 0 || l.Min > slowest || l.Max > slowest || l.Median > 0
}

// Latency of the provider in a run with kills, unless another is given: a kill shall find charges on their way.
const (
	killLatencyMin = paymenttest.Duration(2 * time.Millisecond)
	killLatencyMax = paymenttest.Duration(20 * time.Millisecond)
)

// faults are the provider's, with what a run with kills adds.
func (o *Options) faults() paymenttest.Faults {
	f := o.Faults
	if o.Kills > 0 && f.Latency.Kind == "" {
		f.Latency = paymenttest.Latency{Kind: "uniform", Min: killLatencyMin, Max: killLatencyMax}
	}
	return f
}

// leastSession is the shortest session that a broker takes unless it is told otherwise.
const leastSession = "6s"

// KillEnv are the settings of billing in a run with kills: how long a dead
// member keeps its partitions, and a dead owner its lease (budget, one attempt
// and 3 s), is most of such a run's time.
func (o *Options) KillEnv() []string {
	session := "2s"
	if o.Brokers != "" {
		session = leastSession
	}
	return []string{"KAFKA_SESSION_TIMEOUT=" + session, "PAYMENT_TIMEOUT=2s", "CHARGE_BUDGET=2s"}
}

// childEnviron is the whole environment of an instance.
func (o *Options) childEnviron(own ...string) []string {
	// A setting of billing that happens to stand in the user's environment would change the run.
	pass := []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOTRACEBACK", "GOMAXPROCS"}
	var environ []string
	for _, pair := range o.Environ {
		name, _, _ := strings.Cut(pair, "=")
		for _, p := range pass {
			if name == p {
				environ = append(environ, pair)
			}
		}
		if strings.HasPrefix(name, "OTEL_") {
			environ = append(environ, pair)
		}
	}
	environ = append(environ, own...)
	switch {
	case o.Kills > 0:
		environ = append(environ, o.KillEnv()...)
	case o.Joins > 0:
		// Members hear of a join by a heartbeat, of which there are three in a session.
		environ = append(environ, "KAFKA_SESSION_TIMEOUT="+leastSession)
	}
	return append(environ, o.Env...)
}
