package kafka

import (
	"maps"
	"strings"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// connection returns the settings that every client of these brokers shares.
func (c Config) connection() confluent.ConfigMap {
	settings := confluent.ConfigMap{
		"bootstrap.servers": strings.Join(c.Brokers, ","),
		"client.id":         c.ClientID,
		// The default of 10s would leave us away that long after a broker's restart.
		"reconnect.backoff.max.ms": 1000,
		"enable.metrics.push":      false,
	}
	optional := map[string]string{
		"security.protocol":        strings.ToLower(c.Security.Protocol),
		"sasl.mechanism":           c.Security.SASLMechanism,
		"sasl.username":            c.Security.SASLUsername,
		"sasl.password":            c.Security.SASLPassword,
		"ssl.ca.location":          c.Security.CAFile,
		"ssl.certificate.location": c.Security.CertFile,
		"ssl.key.location":         c.Security.KeyFile,
	}
	for name, value := range optional {
		if value != "" {
			settings[name] = value
		}
	}
	return settings
}

// consuming returns the settings of the group member. Dynamic membership on
// purpose: a fenced static member is a fatal error for ever.
func (c Config) consuming(logs chan confluent.LogEvent) *confluent.ConfigMap {
	settings := c.connection()
	maps.Copy(settings, confluent.ConfigMap{
		"group.id":                      c.GroupID,
		"auto.offset.reset":             "earliest", // with latest, a first start would skip paid orders
		"enable.auto.commit":            false,
		"enable.auto.offset.store":      false, // else offsets run ahead of what is durable
		"isolation.level":               "read_committed",
		"partition.assignment.strategy": "cooperative-sticky",
		"session.timeout.ms":            int(c.SessionTimeout.Milliseconds()),
		"heartbeat.interval.ms":         max(1, int(c.SessionTimeout.Milliseconds())/3),
		"max.poll.interval.ms":          int(c.MaxPollInterval.Milliseconds()),
		"enable.partition.eof":          true,
		// A full prefetch queue otherwise stalls fetching for a second.
		"fetch.queue.backoff.ms": 20,
		// A partition that was resumed waits for the fetch that is out without it:
		// with the default of 500 ms every pause would cost half a second.
		"fetch.wait.max.ms":          100,
		"queued.min.messages":        prefetchRecords,
		"queued.max.messages.kbytes": prefetchKiB,
		"max.partition.fetch.bytes":  fetchBytes,
		"fetch.max.bytes":            prefetchKiB << 10,
		// Partitions that are added to the topic are found within a minute.
		"topic.metadata.refresh.interval.ms": 60_000,
		"statistics.interval.ms":             statsInterval,
		"go.logs.channel.enable":             true,
		"go.logs.channel":                    logs,
	})
	return &settings
}
