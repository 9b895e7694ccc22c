package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/sandbox/process"
)

const (
	// DefaultMinSessionTimeout lets tests see a dead member in a fraction of a second; Kafka's own bound is 6 s.
	DefaultMinSessionTimeout = 100 * time.Millisecond
	// MaxMessageBytes is the largest record batch taken: room for values over the service's own limit of 1 MiB.
	MaxMessageBytes = 4 << 20

	// portTries is how often a new port is chosen when another process has taken one meanwhile.
	portTries = 3
	// topicTimeout bounds the creation of topics.
	topicTimeout = 10 * time.Second
)

// Options are the settings of a broker; the zero value is ready for tests.
type Options struct {
	// Port is the port on 127.0.0.1; 0: a free one.
	Port int
	// Topics are created at the start, with their number of partitions. Those that a DataDir holds already are left as they are.
	Topics map[string]int32
	// DataDir keeps the data on disk; empty: in memory.
	DataDir string
	// MinSessionTimeout is the shortest session that a group member may ask for; 0: DefaultMinSessionTimeout.
	MinSessionTimeout time.Duration
	// Params are further broker settings by their Kafka name, of those that kfake knows; they win over the package's own.
	Params map[string]string
	// Advertise is the address that clients are told to connect to, that of a proxy say; empty: the broker's own.
	Advertise string
	// Log receives warnings and errors; nil discards them.
	Log io.Writer
}

// Broker is a running broker, a cluster of one.
type Broker struct {
	cluster *kfake.Cluster
	keeper  *keeper
	addrs   []string // kept: a closed cluster does not answer any more, not even for its address
}

// Start starts a broker, which answers at once. It runs in goroutines of this process until Close.
func Start(options Options) (*Broker, error) {
	if options.Port != 0 {
		return startOn(options, options.Port)
	}

	var err error

	for range portTries {
		// Not left to the system, which takes ports of outgoing connections: a broker must be able to come back on its old port.
		ports, portErr := process.FreePorts(1)
		if portErr != nil {
			return nil, fmt.Errorf("start embedded broker: %w", portErr)
		}

		var b *Broker
		if b, err = startOn(options, ports[0]); err == nil {
			return b, nil
		}

		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}

	return nil, err
}

func startOn(options Options, port int) (*Broker, error) {
	doors := newDoors()

	cluster, err := kfake.NewCluster(append(settings(options, port), kfake.ListenFn(doors.behind(options.listen)))...)
	if err != nil {
		return nil, fmt.Errorf("start embedded broker on port %d: %w", port, err)
	}

	keeper, err := keep(cluster, doors, port, options.session())
	if err != nil {
		cluster.Close()

		return nil, fmt.Errorf("start embedded broker: %w", err)
	}

	b := &Broker{cluster: cluster, keeper: keeper, addrs: cluster.ListenAddrs()}
	if err := b.addTopics(options.Topics); err != nil {
		b.Close()

		return nil, fmt.Errorf("start embedded broker: %w", err)
	}

	return b, nil
}

// addTopics creates the topics that are not there yet.
func (b *Broker) addTopics(topics map[string]int32) error {
	if len(topics) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), topicTimeout)
	defer cancel()

	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...))
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	defer client.Close()

	admin := kadm.NewClient(client)

	for _, name := range slices.Sorted(maps.Keys(topics)) {
		if _, err := admin.CreateTopic(ctx, topics[name], 1, nil, name); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", name, err)
		}
	}

	return nil
}

// session is the shortest session that a member may ask for.
func (o Options) session() time.Duration {
	return cmp.Or(o.MinSessionTimeout, DefaultMinSessionTimeout)
}

// listen listens, and says that it does so where it is told to.
func (o Options) listen(network, at string) (net.Listener, error) {
	if o.Advertise != "" {
		return advertising(o.Advertise)(network, at)
	}

	return net.Listen(network, at) //nolint:noctx // returns at once
}

func settings(o Options, port int) []kfake.Opt {
	session := o.session()
	params := map[string]string{
		"message.max.bytes": strconv.Itoa(MaxMessageBytes),
		"log.retention.ms":  "-1",
		// A member must be able to beat several times within the shortest session.
		"group.consumer.heartbeat.interval.ms": strconv.FormatInt(max(session/5, 20*time.Millisecond).Milliseconds(), 10),
	}
	maps.Copy(params, o.Params)

	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(port), kfake.GroupMinSessionTimeout(session), kfake.BrokerConfigs(params),
	}
	if o.DataDir != "" {
		opts = append(opts, kfake.DataDir(o.DataDir))
	}

	if o.Log != nil {
		opts = append(opts, kfake.WithLogger(kfake.BasicLogger(o.Log, kfake.LogLevelWarn)))
	}

	return opts
}

// Addrs returns the broker's address, for the list of bootstrap servers. It is known after Close too.
func (b *Broker) Addrs() []string { return b.addrs }

// Cluster gives tests the broker itself, to inject faults and look inside.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close ends the broker and its connections. What a DataDir holds stays.
func (b *Broker) Close() {
	b.keeper.close()
	b.cluster.Close()
}
