package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"example.com/billing/internal/domain"
)

// errorPause is the least time between two lines about the telemetry's own
// errors: a collector that is away must not fill the log.
const errorPause = 10 * time.Second

// errorLog is OpenTelemetry's error handler: it logs one error each errorPause
// and counts the others.
type errorLog struct {
	log   *slog.Logger
	clock domain.Clock

	mu      sync.Mutex
	next    time.Time
	dropped int // since the last line
}

// Handle logs the error, or counts it.
func (e *errorLog) Handle(err error) {
	if err == nil {
		return
	}
	dropped, ok := e.admit()
	if !ok {
		return
	}
	e.log.LogAttrs(context.Background(), slog.LevelWarn, "telemetry is in trouble",
		slog.Any("error", err), slog.Int("errors_not_logged", dropped))
}

func (e *errorLog) admit() (dropped int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	if now.Before(e.next) {
		e.dropped++
		return 0, false
	}
	dropped, e.dropped = e.dropped, 0
	e.next = now.Add(errorPause)
	return dropped, true
}
