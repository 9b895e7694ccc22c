// Package audit proves what became of the records of a topic. It holds four
// witnesses against each other: the topic as it stands in Kafka, the tables of the
// service, its counters, and the provider's ledger where that can be asked. It
// changes nothing, joins no group and may run beside the service.
//
//	topic ──each record──▶ evidence by event and coordinates ──▶ exactly one terminal record
//	                                                             (or: not yet reached)
//	charge, charge_intent, processed_event ──each row of the range──▶ the record it names
//	                └──▶ provider, by our own key: missing, double, wrong, unrecorded
//
// # Races are no findings
//
// What the group had committed when the audit began must be explained; what lies
// beyond is counted apart. Whatever looks wrong is looked at once more after a
// pause, with fresh evidence, and only the second look counts.
//
// # Bounds
//
// Records are read in batches, tables in pages, each in a short transaction of its
// own. What is kept meanwhile: five bits for each offset of the range, at most a
// few thousand suspects without their bytes, and as many findings as are asked
// for; all others are counted.
package audit
