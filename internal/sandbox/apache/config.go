package apache

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultMinSessionTimeout lets tests see a dead member in a fraction of a second; Kafka's own bound is 6 s.
	DefaultMinSessionTimeout = 100 * time.Millisecond
	// DefaultHeapMB is the broker's heap in MiB; the whole process needs about 300 MiB more.
	DefaultHeapMB = 512
	// MaxMessageBytes is the largest record batch taken: room for values over the service's own limit of 1 MiB.
	MaxMessageBytes = 4 << 20
)

// What is in a broker's folder.
const (
	propertiesFile = "server.properties"
	logFile        = "log4j2.properties"
	dataFolder     = "data"
	tempFolder     = "tmp"
)

// clusterID is the same for every broker, as each is a cluster by itself: a new one on an earlier broker's folder must be of its cluster.
const clusterID = "YmlsbGluZy1zYW5kYm94IQ"

// offsetsPartitions is the number of partitions, and so of coordinators, that groups are spread over.
const offsetsPartitions = 4

// Options are the settings of a broker; the zero value is ready for tests.
type Options struct {
	// Dir keeps data and configuration; empty: a temporary folder, removed by Stop.
	Dir string
	// Libs is the folder of the jars; empty: .cache/kafka/libs of the repository around the working directory.
	Libs string
	// Java is the java program; empty: that of PATH, else of Homebrew.
	Java string
	// Port is the clients' port on 127.0.0.1; 0: a free one. The controller's port is always a free one.
	Port int
	// MinSessionTimeout is the shortest session that a group member may ask for; 0: DefaultMinSessionTimeout.
	MinSessionTimeout time.Duration
	// HeapMB is the heap in MiB; 0: DefaultHeapMB.
	HeapMB int
	// Params are further lines of server.properties; they win over the package's own.
	Params map[string]string
	// Log receives the broker's log; nil discards it. The last lines are part of the errors either way.
	Log io.Writer
}

// withDefaults fills in the zero fields.
func (o Options) withDefaults() Options {
	if o.MinSessionTimeout == 0 {
		o.MinSessionTimeout = DefaultMinSessionTimeout
	}

	if o.HeapMB == 0 {
		o.HeapMB = DefaultHeapMB
	}

	return o
}

// properties are the settings of the node.
func properties(o Options, port, controller int) map[string]string {
	session := strconv.FormatInt(o.MinSessionTimeout.Milliseconds(), 10)
	p := map[string]string{
		"process.roles":                       "broker,controller",
		"node.id":                             "1",
		"controller.quorum.bootstrap.servers": loopback(controller),
		"listeners":                           "PLAINTEXT://" + loopback(port) + ",CONTROLLER://" + loopback(controller),
		"advertised.listeners":                "PLAINTEXT://" + loopback(port),
		"controller.listener.names":           "CONTROLLER",
		"inter.broker.listener.name":          "PLAINTEXT",
		"listener.security.protocol.map":      "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		// Relative to the working directory, which is the broker's folder: a comma in the path of the folder would make it two.
		"log.dirs": dataFolder,

		"auto.create.topics.enable": "false",
		"message.max.bytes":         strconv.Itoa(MaxMessageBytes),
		"replica.fetch.max.bytes":   strconv.Itoa(MaxMessageBytes),
		// The audit of a run needs every record of it.
		"log.retention.ms": "-1",

		// Internal topics: one node, and a few partitions, as each costs files and start-up time.
		"offsets.topic.replication.factor":                 "1",
		"offsets.topic.num.partitions":                     strconv.Itoa(offsetsPartitions),
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "4",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"share.coordinator.state.topic.num.partitions":     "1",

		"group.initial.rebalance.delay.ms":         "0",
		"group.min.session.timeout.ms":             session,
		"group.consumer.min.session.timeout.ms":    session,
		"group.consumer.min.heartbeat.interval.ms": "50",

		// A small heap and two cores: Kafka's defaults are for a machine of its own.
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"background.threads":             "2",
		"log.cleaner.dedupe.buffer.size": strconv.Itoa(4 << 20),
		// After a crash the controller takes the new broker for an impostor of the old one until the old one's session is over (9 s by
		// default). Shorter makes Restart quicker; too short would fence a broker that merely waits for a busy machine's processor.
		"broker.session.timeout.ms":    "3000",
		"broker.heartbeat.interval.ms": "500",
	}
	maps.Copy(p, o.Params)

	return p
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// logConfig sends Kafka's log to standard output. Its start-up is some 300 lines at INFO, so only warnings are of interest, and the one line that says it runs.
const logConfig = `status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
`

// writeConfig writes server.properties and the log's configuration to dir.
func writeConfig(dir string, settings map[string]string) error {
	var text strings.Builder

	for _, key := range slices.Sorted(maps.Keys(settings)) {
		// In a properties file a backslash begins an escape.
		fmt.Fprintf(&text, "%s=%s\n", key, strings.ReplaceAll(settings[key], `\`, `\\`))
	}

	for name, content := range map[string]string{propertiesFile: text.String(), logFile: logConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write the broker's configuration: %w", err)
		}
	}

	return nil
}
