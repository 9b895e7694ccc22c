// Package process starts the servers of the sandbox (PostgreSQL, Apache Kafka) as children that cannot outlive it.
//
// A server gets a process group of its own, so that Ctrl-C in a terminal reaches the sandbox only and the sandbox decides the
// order in which its parts end. On Linux the kernel also signals the server when the sandbox dies, by whatever means
// (sys_linux.go); elsewhere an orderly end is the only guard (sys_other.go), and a sandbox that is killed with -9 leaves its
// servers to be ended by hand.
//
// Folders made by [TempDir] carry the pid of their owner in the name; the next sandbox removes those whose owner is gone.
package process
