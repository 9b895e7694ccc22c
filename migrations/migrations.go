// Package migrations holds the schema, one numbered file a step, embedded into
// the binary so that a deploy carries its own schema.
package migrations

import "embed"

// FS holds the migration files.
//
//go:embed *.sql
var FS embed.FS
