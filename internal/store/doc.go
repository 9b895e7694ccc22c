// Package store is the memory of the service: PostgreSQL through GORM, and the
// only package that knows of either.
//
// One method is one transaction. The flow writes through two pools: the main one,
// whose transactions stay open while charges are in flight, and a small side pool
// of short transactions, on which intents are committed before a call. A third
// pool, read only, serves people.
//
//	pool     who                        lock timeout    connections
//	main     [Store.Transact]           LockTimeout     MaxTransactions
//	side     [Store.Aside], [Store.Open] SideLockTimeout SideConns
//	archive  the admin API, health      –               ArchiveConns
//
// An [Outbox] has one connection more: the session whose advisory lock says who publishes.
//
// # The claim
//
// The insert into processed_event must tell exactly which events of a batch are
// fresh. With GORM only one spelling of a multi-row ON CONFLICT DO NOTHING does:
// an explicit conflict target, RETURNING without columns, no column default in
// the model, and a slice of its own, which GORM resets to the rows that were
// inserted. See [tx.Claim] and its test.
//
// # Statements
//
// All other statements of the flow take whole columns as arrays: one statement a
// kind and batch, whose text does not depend on the number of rows. pgx keeps it
// prepared and PostgreSQL keeps its plan; since that may have been made when the
// tables were empty, the flow's sessions may not plan to read one from end to end.
// Rows are locked in the order of the statement's ORDER BY.
//
// # Positions
//
// [Offsets] keeps how far each partition is durable, for a group that does not leave it to Kafka. A
// partition is taken by raising its epoch; every write compares it, so that whoever had the partition
// before fails with [domain.ErrFenced], the batch around the write included.
//
// # Errors
//
// Errors are told apart by SQLSTATE, never by text. Class 22 is
// [domain.ErrData]; a unique violation while an intent takes its order is
// [domain.ErrOrderTaken]; all others mean that the transaction is to be run
// again.
package store
