package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"example.com/billing/internal/domain"
)

// Config says what to tell and where. Further settings are those of the
// OpenTelemetry specification, read from the OTEL_* environment.
type Config struct {
	// ServiceName and ServiceVersion name the resource; OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES go before them.
	ServiceName    string
	ServiceVersion string
	// LogLevel is LOG_LEVEL: debug, info, warn or error. Default info.
	LogLevel string
	// LogFormat is LOG_FORMAT: json or text. Default json.
	LogFormat string
	// LogOutput is where log lines go. Required.
	LogOutput io.Writer
	// Getenv looks a variable of the environment up, as os.Getenv does. It decides
	// whether an exporter runs; the exporter itself reads the process's environment.
	// Required.
	Getenv func(string) string
	// Clock bounds how often errors of the telemetry itself are logged. Required.
	Clock domain.Clock
}

// Validate returns every complaint about the configuration at once.
func (c *Config) Validate() error {
	_, level := parseLevel(c.LogLevel)
	complaints := []error{level, checkFormat(c.LogFormat)}
	if c.ServiceName == "" {
		complaints = append(complaints, errors.New("the service needs a name"))
	}
	if c.LogOutput == nil || c.Getenv == nil || c.Clock == nil {
		complaints = append(complaints, errors.New("telemetry needs a log output, an environment and a clock"))
	}
	return errors.Join(complaints...)
}

func parseLevel(name string) (slog.Level, error) {
	switch name {
	case "debug":
		return slog.LevelDebug, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("LOG_LEVEL: %q is none of debug, info, warn, error", name)
}

func checkFormat(name string) error {
	if name == "json" || name == "text" || name == "" {
		return nil
	}
	return fmt.Errorf("LOG_FORMAT: %q is none of json, text", name)
}
