package kafka

import (
	"context"
	"log/slog"

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
