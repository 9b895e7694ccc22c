package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	confluent "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// forwardLogs brings a client's own log lines into ours until end is closed.
func forwardLogs(logger *slog.Logger, logs <-chan confluent.LogEvent, end <-chan struct{}) {
	for {
		select {
		case line := <-logs:
			logger.Log(context.Background(), severity(line.Level), "kafka client",
				"message", line.Message, "tag", line.Tag)
		case <-end:
			return
		}
	}
}

// quietly has a client's own lines told as ours, and at debug only: that of clients whose
// trouble is in the errors of what they are asked. They would write to the process's standard error
// otherwise. The returned function ends it; it is called once the client is closed, or was
// not made.
func quietly(settings confluent.ConfigMap, logger *slog.Logger) (end func()) {
	logs, ended := make(chan confluent.LogEvent, 64), make(chan struct{})
	settings["go.logs.channel.enable"], settings["go.logs.channel"] = true, logs
	settings["log_level"] = 0 // nobody would see them
	if logger.Enabled(context.Background(), slog.LevelDebug) {
		settings["log_level"] = 6
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			select {
			case line := <-logs:
				logger.Debug("kafka client", "severity", severity(line.Level).String(), "message", line.Message, "tag", line.Tag)
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		forwarding.Wait()
	}
}

// asking returns a client that asks brokers about topics and groups, and joins none. It
// connects to nobody yet. The returned function frees it.
func (c Config) asking(logger *slog.Logger) (*confluent.AdminClient, func(), error) {
	settings := c.connection()
	end := quietly(settings, logger)
	admin, err := confluent.NewAdminClient(&settings)
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("kafka admin client: %w", err)
	}
	return admin, func() {
		admin.Close()
		end()
	}, nil
}

// asked adds to an error whom it was about: what the client says names no brokers.
func (c Config) asked(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("brokers %s: %w", strings.Join(c.Brokers, ","), err)
}

// severity translates a syslog level.
func severity(syslog int) slog.Level {
	switch {
	case syslog <= 3: // emergency, alert, critical, error
		return slog.LevelError
	case syslog == 4: // warning
		return slog.LevelWarn
	case syslog <= 6: // notice, info
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
