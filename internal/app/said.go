package app

import (
	"io"
	"log/slog"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"example.com/billing/internal/telemetry"
)

// commandLogger logs what a command has to tell beside its answer: warnings, as text; with
// LOG_LEVEL=debug everything, the Kafka client's own lines among it.
func (p Process) commandLogger(to io.Writer) (*slog.Logger, error) {
	level := "warn"
	if p.getenv("LOG_LEVEL") == "debug" {
		level = "debug"
	}
	return telemetry.NewLogger(to, level, "text")
}

// earlyLogger logs before the settings are known to be right: as the service would where
// billing serve is asked for, else as a command does.
func (p Process) earlyLogger(cmd *cobra.Command) (*slog.Logger, error) {
	if cmd.Name() != serveName {
		return p.commandLogger(cmd.ErrOrStderr())
	}
	vars := env.ToMap(p.Environ)
	if log, err := telemetry.NewLogger(cmd.ErrOrStderr(), vars["LOG_LEVEL"], vars["LOG_FORMAT"]); err == nil {
		return log, nil
	}
	return telemetry.NewLogger(cmd.ErrOrStderr(), "", "") // what is wrong with them is told next
}
