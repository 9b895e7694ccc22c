package telemetry

import (
	"log/slog"

	"go.opentelemetry.io/otel"

	"example.com/billing/internal/domain"
)

// NewErrorHandler returns what Setup hands to OpenTelemetry.
func NewErrorHandler(log *slog.Logger, clock domain.Clock) otel.ErrorHandler {
	return &errorLog{log: log, clock: clock}
}
