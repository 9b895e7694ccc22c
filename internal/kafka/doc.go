// Package kafka brings records in: it consumes one topic as a member of a
// consumer group and hands every record to a [Biller], in order per partition,
// until the Biller has made it durable. Only then may its offset be committed.
//
//	broker ─▶ poll loop ─▶ lane (one per assigned partition) ─▶ Biller
//	          only polls,   bounded queue; what waits is the      │ nil: durable
//	          never works   next batch, no linger                 ▼
//	             │ ▲                                          watermark
//	       pause │ │ resume                                       │ contiguous prefix
//	             ▼ │                                              ▼
//	          full: by records or bytes                       committer ─▶ StoreOffsets, Commit
//
// # Who owns what
//
//   - The poll loop ([Consumer.Run]'s goroutine) owns the client: it polls, pauses,
//     resumes, and runs the rebalance callback. It never waits for a Biller,
//     except in the callback, where the wait is bounded by Config.DrainTimeout.
//   - A lane owns the records of its partition. A batch is what waits, at most
//     Config.BatchMax; its offsets rise strictly. A batch that fails stays at the head of
//     the queue and is run again after a pause, for ever: a lane never skips. That is
//     also what answers an ambiguous COMMIT: the lane starts again at its last
//     durable position instead of guessing.
//   - The committer alone stores and commits offsets. It commits only for the
//     lane that owns the partition, so that a lane that was revoked or lost cannot move an
//     offset any more, whatever it finishes later.
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
// Offsets have gaps (aborted transactions, control records): nothing here counts
// by offsets, and the end-of-partition event moves an idle lane's position behind the
// control records, so that lag reaches zero.
package kafka
