// Package broker is the embedded Kafka-protocol broker of the sandbox and of the tests: kfake, behind one package.
//
// kfake is a broker in pure Go without a promise of stability, so nothing else imports it, save tests that use [Broker.Cluster] to inject faults
// and to look inside. It speaks the protocol in full (groups old and new, transactions, admin requests) but replicates nothing; what must
// hold on a real broker is tested on one as well (package apache).
//
// A member that waits for an answer to JoinGroup or SyncGroup does not lose its session meanwhile, as with Kafka; by itself kfake drops
// it without ever answering. See keeper.go, which the tests that speak to a bare kfake do without.
//
// Nothing expires: a run is audited against every record of it. In memory a record of 400 bytes costs about 700 bytes of heap, so
// a million take 0.7 GB; give long runs a DataDir, which keeps them on disk and over a restart.
package broker
