// Package payment is the way out for the money: the client of the payment
// provider whose contract is api/payment-provider.openapi.yaml.
//
//	Charge ──▶ attempt ──▶ exchange ──▶ one POST ──▶ status ──┐
//	   ▲          │            │                              ▼
//	   │          │            └── no status ──▶ failure   outcome.go: the table
//	   │          └── span, metrics, timeout                  │
//	   └── fold: what all attempts together say ◀─────────────┘
//
// Three questions decide about money here, and each is answered in one place.
//
// What does an HTTP status mean? The table in outcome.go; nothing else looks at
// statuses.
//
// Was the request sent? Each connection counts what is written to it (conn.go). An
// attempt that failed before a single byte of it was handed to the connection was
// surely not sent. Everything else may have been carried out. Only HTTP/1.1 is
// spoken, where a connection belongs to one request at a time.
//
// What do several attempts say together? fold in outcome.go: once a request may
// have been sent, no later attempt can take that back.
//
// # What net/http would do by itself, and must not
//
// A request with an Idempotency-Key is sent again by http.Transport when a reused
// connection breaks, without anybody counting it. It can do so only if it can get
// the body again, so it isn't given the means (attempt.go). Redirects are not
// followed: requests go to the transport directly, not through an http.Client.
//
// # Proxies
//
// HTTPS_PROXY and NO_PROXY are honoured for https: the tunnel shows the proxy
// neither key nor payload, and it cannot repeat a request. A plain http provider
// is always called directly: a proxy in between would see the bearer token and
// might send a POST again.
package payment
