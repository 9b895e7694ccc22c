// Package bench measures billing from outside: `billing serve` as it is built, in a
// process of its own, between a broker, a PostgreSQL with real fsync and a provider,
// each in processes of their own, so that processor time and memory can be told apart.
//
//	backlog ─▶ broker ─▶ billing ─▶ provider      a run: produced first, then consumed
//	                        │           └ meter: first request, last answer, how many at a time
//	                        ▼
//	                    PostgreSQL ── commit timestamps: when each charge was committed
//
// In one run of the bench the same work is done three ways:
//
//	ceiling      the same requests from the same payment client with nothing around it
//	sequential   billing with one event per transaction, one at a time per partition: by its
//	             environment alone
//	billing      billing as it is, with its defaults
//
// A run's time goes from the first request that reaches the provider to the commit of the
// last charge, by the clock of one machine. A run whose sums are wrong (a charge missing, a
// request too many, an amount that differs) is void, and says so: speed is no excuse.
//
// Short runs are repeated in turns, and the median counts, because machines are noisy.
package bench
