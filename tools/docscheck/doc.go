// Package docscheck keeps the documents that name things true: each module
// that the code imports has its reason in docs/dependencies.md and no other
// has, and each path that docs/fork.md sends its reader to is there.
//
// It has tests only, and lives in the module of the tools because it reads the
// repository rather than using it.
package docscheck
