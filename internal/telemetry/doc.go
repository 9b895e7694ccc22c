// Package telemetry sets up what the service tells about itself: traces, metrics
// and logs. It is built once, first of all, and shut down last.
//
//	traces   W3C trace context in and out; exported over OTLP only when the
//	         environment asks for it, else nothing runs and nothing connects
//	metrics  OpenTelemetry instruments, read by Prometheus from one registry of
//	         this process, together with the Go runtime's and the process's own
//	logs     slog, as JSON or text, with trace_id and span_id of the context
//
// Providers are handed to whoever needs them. The only thing set globally is
// OpenTelemetry's error handler, since it has no other way in.
//
// Logs hold no payloads, no secrets and no customer ids: nothing here filters
// them out, so nothing else may put them in.
package telemetry
