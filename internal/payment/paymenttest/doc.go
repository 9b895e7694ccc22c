// Package paymenttest is a payment provider that keeps the contract of
// api/payment-provider.openapi.yaml, remembers everything it was asked in an
// exact ledger, and can be told to fail in every way the contract knows of.
//
//	POST /v1/charges                        charge (Idempotency-Key required)
//	GET  /v1/charges?idempotencyKey=KEY     look a charge up
//	GET  /_ledger                           the sums, see [Ledger]
//	GET  /_ledger/charges?minPosts=N        one [Charge] per line (NDJSON), in order of arrival
//	PUT  /_faults                           replace the fault plan: JSON, or the text form as text/plain
//	GET  /_faults                           the fault plan in force
//	POST /_reset                            forget everything but the fault plan
//	GET  /healthz                           200
//
// # Keys
//
// The first answer that settles a key, captured or declined, is given again for
// the same key and payload. Another payload gets 422, a key that is being worked
// on gets 409. The payload of a key is the one it was first seen with, whatever
// answer that POST got. With ignore-keys every POST captures again.
//
// A charge that has begun is carried out even when its client leaves: that is what
// makes timeouts dangerous.
//
// # Faults as text
//
// The text form serves command line flags; the JSON form is [Faults].
//
//	faults  = item { "," item }
//	item    = "ignore-keys" | "seed=" NUMBER | "latency=" latency | action "=" when [ ":" arg ] [ "@" target ]
//	latency = DURATION | "fixed:" DURATION | "uniform:" MIN ":" MAX | "lognormal:" MEDIAN ":" P99 [ ":" CUT ]
//	when    = PROBABILITY (0 < p ≤ 1) | "next" N (the next N POSTs)
//	target  = "order:" ID { "+" ID } | "key:" UUID { "+" UUID }
//
// Actions, and the argument that each may have:
//
//	STATUS-before   answer STATUS (300 to 599) and charge nothing; STATUS alone means the same
//	STATUS-after    charge, then answer STATUS
//	                arg of 429 and 5xx: Retry-After in seconds; of 3xx: the Location
//	402             decline, and remember it for the key; arg: the decline code
//	reset-before    reset the connection (RST) once the request is read, charge nothing
//	reset-after     charge, then reset the connection
//	cut             charge, announce a body and close the connection in the middle of it
//	hang-before     hold the answer until the client leaves (then charge nothing); arg: at most so long, then go on
//	hang            charge, then hold the answer in the same way
//	huge-id         charge, answer 200 with an id of 10 MB
//	nul-id          charge, answer 200 with an id that holds a NUL
//	not-json        charge, answer 200 with a body that is no JSON
//
// For example
//
//	503-after=0.05,hang=0.01:3s,latency=lognormal:50ms:1s:2s
//	429=next3:2,402=1:insufficient_funds@order:17+18,seed=7
//
// Where several rules fit a POST, at most one of them is played, each with exactly
// its own probability. The dice depend on the seed, the key and on how many POSTs
// the key has had, not on the order in which requests arrive: a run can be repeated.
//
// # Bounds
//
// Bodies to 64 KiB, keys to 255 bytes. Memory grows by about 300 bytes per key and
// stops at [Options.MaxKeys], from where on new keys get 503 and are not charged.
// Latencies and holds end within [MaxHold], or when the provider is closed.
package paymenttest
