// Package domain is the ground the service stands on: what an order event is,
// what a charge is, and the one use case that turns the first into the second
// exactly once in effect.
//
// It knows nothing of Kafka, PostgreSQL or HTTP. What it needs from them it
// declares here as small interfaces: [Book] (the store), [Provider] (the
// payment provider) and [Clock].
//
// # The way of one event
//
//	Record ──decode──▶ Event ──┐
//	                           ▼
//	        ┌──────────── one transaction ────────────┐
//	        │ claim    insert processed_event         │  fresh, or a duplicate
//	        │ intend   commit intents aside           │  order claimed, evidence
//	        │ charge   call the provider, concurrently│
//	        │ record   final charges, or intents due  │
//	        └──────────────────────────────────────────┘
//	                           ▼
//	                   offset may be committed
//
// What became final, and what was parked, is told to others: each [Message] is appended
// by the transaction that makes it true, and published after it has committed.
//
// An intent that is not finished goes on by itself: [Worker] leases it when it
// is due, looks again, calls with no transaction open and finishes it in
// another one.
//
// # States of an intent
//
//	            lease                 definite answer, claimed
//	waiting ───────────▶ calling ───────────────────────────────▶ (gone: final charge)
//	   ▲                  │  │ │
//	   │ surely not sent  │  │ └── definite answer, unclaimed ──▶ answered ──▶ (gone)
//	   └──────────────────┘  │
//	                         ├── no definite answer ──▶ unknown ──lease──▶ calling
//	                         └── cannot be finished ──▶ parked (may be charged, keeps the order)
//	                                                    held   (surely uncharged)
package domain
