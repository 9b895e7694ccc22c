// Package torture runs the billing service under faults for minutes, and judges from
// outside whether anything was lost or charged twice.
//
//	load ─▶ broker ◀── link ──▶ victims 1–3 ◀── link ──▶ provider (ledger, sentry)
//	                                │
//	                               link ──▶ PostgreSQL
//
// A victim is `billing serve` with a hook at every point of [domain.Points]; told by
// package control it kills itself there, stops itself past the group's session, or
// exits. The links are TCP proxies that can be cut, swallow what they are given, or
// break in the middle of a request. Everything is drawn from one seed.
//
// There are two families of runs. In family a the provider ignores idempotency keys:
// the faults are those that our deduplication has to absorb alone, and exactly one POST
// per charged event is allowed. In family b it honours them, every fault may come, and
// nothing may be lost, nothing charged twice, and no POST repeated without a reason.
//
//	start ─▶ (strike, see what was in flight, go on)* ─▶ heal all ─▶ await the end ─▶ stop ─▶ read ─▶ judge
package torture
