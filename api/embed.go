// Package api holds the contracts that others build against: what the service
// reads and what it offers over HTTP. The files are the truth; they are embedded
// so that the binary serves, and the tests check, the same bytes.
package api

import "embed"

// FS holds the specifications at the root and the events' JSON Schemas with
// their examples under events/.
//
//go:embed events *.yaml
var FS embed.FS
