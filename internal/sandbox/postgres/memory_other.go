//go:build !linux

package postgres

// memoryFolder is a folder in memory; only Linux has one at a known place.
func memoryFolder() string { return "" }
