package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger of a level (debug, info, warn, error; default info)
// and a format (json, text; default json) whose lines carry the trace_id and
// span_id of their context. The error names every bad value.
func NewLogger(to io.Writer, level, format string) (*slog.Logger, error) {
	least, err := parseLevel(level)
	if err = errors.Join(err, checkFormat(format)); err != nil {
		return nil, err
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "text" {
		return slog.New(&traceHandler{Handler: slog.NewTextHandler(to, options)}), nil
	}
	return slog.New(&traceHandler{Handler: slog.NewJSONHandler(to, options)}), nil
}

// traceHandler adds the ids of the context's span to each line, at its top level
// even where a group is open: there they are searched for.
type traceHandler struct {
	slog.Handler
	outer slog.Handler                      // as it was before the first group; nil without one
	inner []func(slog.Handler) slog.Handler // what was added since, in its order
}

// Handle writes the record.
func (h *traceHandler) Handle(ctx context.Context, r slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{
		slog.String("trace_id", span.TraceID().String()),
		slog.String("span_id", span.SpanID().String()),
	}
	if h.outer == nil {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	to := h.outer.WithAttrs(ids)
	for _, add := range h.inner {
		to = add(to)
	}
	return to.Handle(ctx, r)
}

// WithAttrs returns a handler whose lines carry the attributes.
func (h *traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	add := func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) }
	if h.outer == nil {
		return &traceHandler{Handler: add(h.Handler)}
	}
	return h.within(h.outer, add)
}

// WithGroup returns a handler whose lines' further attributes are in a group.
func (h *traceHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	outer := h.outer
	if outer == nil {
		outer = h.Handler
	}
	return h.within(outer, func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *traceHandler) within(outer slog.Handler, add func(slog.Handler) slog.Handler) *traceHandler {
	return &traceHandler{Handler: add(h.Handler), outer: outer, inner: slices.Concat(h.inner, []func(slog.Handler) slog.Handler{add})}
}
