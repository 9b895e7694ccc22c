// Package kafka brings records in, and news out. It consumes one topic as a member of a
// consumer group and hands every record to a [Biller], until the Biller has made it
// durable. Only then may its offset, and none before that of an earlier record, be committed.
//
//	broker ─▶ poll loop ─▶ lane (one per assigned partition) ─▶ Biller, several batches at a time
//	          only polls,   inbox ─▶ queue ─▶ batch: the first      │ nil: durable
//	          never works           that may go, no linger          ▼
//	             │ ▲                  ▲ flights: no event or      watermark
//	       pause │ │ resume           │ order in two batches        │ contiguous prefix
//	             ▼ │                  ▼ of this process             ▼
//	          full: by records or bytes                           committer ─▶ StoreOffsets, Commit
//
// # Who owns what
//
//   - The poll loop ([Consumer.Run]'s goroutine) owns the client: it polls, pauses,
//     resumes, and runs the rebalance callback. It never waits for a Biller,
//     except in the callback, where the wait is bounded by Config.DrainTimeout.
//   - A lane's goroutine owns the records of its partition. A batch is the first of
//     them that may go, at most Config.BatchMax, and its offsets rise strictly. What fails goes back to
//     its place and is run again after a pause, for ever: a lane never skips. That is
//     also what answers an ambiguous COMMIT: the records are run again, and found to be
//     there, instead of guessing.
//   - A batch's goroutine owns one slot of Config.MaxTransactions, and calls the Biller.
//   - The committer alone stores and commits offsets. It commits only for the
//     lane that owns the partition, so that a lane that was revoked or lost cannot move an
//     offset any more, whatever it finishes later.
//
// # What goes when
//
// The first batch of a lane begins at once, whatever waits: at a low rate a record goes
// when it comes. Beside batches in flight another one begins when a quarter of a batch
// waits, or a few records have waited for milliseconds and no other lane wants the slot: under load batches
// stay big, and behind a slow provider nothing waits for a whole round trip. After a failure a
// lane has one batch in flight, no bigger than the one that failed, until one succeeds.
//
// A record whose event or order is in a batch in flight, of any lane, is passed over, and
// those behind it go on; so are later records of an event or order that was passed
// over. Records of one order that are in one partition are thus billed in their order.
// A lane that stops takes nothing new, but bills what it has passed over, so that the position
// reaches all that is durable.
//
// # The life of a partition
//
//	assigned ─▶ lane runs ─┬─ revoked ─▶ drain (bounded) ─▶ commit ─▶ unassign
//	            ▲    │     ├─ lost ────▶ cancel what has not called yet; no commit
//	     resume │    │ full└─ shutdown ▶ as revoked, then leave the group
//	            └ paused
//
// A pause is undone before its partition leaves, since in this client it would
// outlive the assignment; a partition that should be heard of and is not is resumed again.
//
// A fatal client error ends [Consumer.Run] within seconds, without closing the client:
// closing it after a fatal error may hang for ever in this version.
//
// # Positions in the book
//
// With Config.Positions the book keeps each partition's position, and Kafka gets it for tools.
//
//	assigned ─▶ restoring: take it in the book (its epoch rises), look whether its position is in the log
//	                │ known          │ given back: forgotten
//	                ▼                ▼
//	          client assigned at it, lane runs ─▶ fenced: the lane ends; taken again if the group still says it is ours
//
// The callback does not wait for the book: the client gets the partition once its position is
// known. A batch asks its lane for the position just before it commits, and writes it in its own transaction
// as the last lock: the prefix that has landed, and its own records if they follow. What such writes leave
// behind (control records, batches that ended out of order) is written aside when the lane is idle or ends.
//
// Offsets have gaps (aborted transactions, control records): nothing here counts
// by offsets, and the end-of-partition event moves an idle lane's position behind the
// control records, so that lag reaches zero.
//
// # Out
//
//	Outbox ─▶ Relay: one of all instances ─▶ idempotent producer, acks=all ─▶ reports ─▶ cursor
//
// A [Relay] publishes what transactions have appended to an [Outbox], in its order. The
// cursor moves when every message of a batch was delivered: whatever ends in between is
// published again, and nothing is passed over, but for a message that the brokers
// refuse for its own sake, by itself, twice. Brokers that are away are waited for.
package kafka
