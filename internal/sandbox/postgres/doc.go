// Package postgres starts a private PostgreSQL server from the binaries that are installed on the machine: no Docker, no
// download, no cluster of the distribution touched.
//
//	find initdb and postgres ─▶ folder of its own ─▶ initdb ─▶ postgres (our child) ─▶ postmaster.pid says "ready"
//
// The server is ours alone: superuser "postgres" without a password, reachable on 127.0.0.1 and on a unix socket in a folder
// that only its user can enter. PostgreSQL refuses to run as root, so root starts it as the user postgres, or nobody. The server
// program itself is the child rather than pg_ctl, so that its end is seen and, on Linux, the kernel ends it with us.
//
// Unless it is to be durable the data lies in memory (/dev/shm) where there is room, and nothing is flushed to disk. Commits still
// reach the kernel before they are acknowledged: they survive [Server.Kill] and an immediate [Server.Restart], not a power cut.
//
// A start takes about half a second on a quiet machine, most of it initdb. Share one server among test packages and give each
// test a database of its own.
package postgres
