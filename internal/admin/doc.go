// Package admin is the operators' way in: an HTTP API that shows health, counters,
// events, charges, dead letters, the consumer and the configuration; it acts on dead
// letters, and pauses and resumes intake.
//
//	request ─▶ observe ─▶ recover ─▶ headers ─▶ auth ─▶ route ─▶ endpoint ─▶ JSON
//	                                                        │
//	                                                        └─ error ─▶ problem+json
//
// The contract is api/openapi.yaml, and the tests hold every answer against it.
//
// # Who may ask
//
// /livez, /readyz, /healthz and /metrics are open, since probes and scrapers hold
// no tokens. Everything else, unknown paths included, takes a bearer token: that
// of an operator for all, the read token for reads. A route that is added is
// closed until it is put among the open ones.
//
// # What protects the flow
//
// Reads of the database are few at a time and bounded in time ([Config.MaxQueries]),
// health checks run at most once a second however often they are asked for, and
// connections, headers and bodies have bounds; one action on dead letters runs at a
// time, at a bounded rate: the worst that the admin API can
// do to the charging of orders is known.
package admin
