// Package orders makes the input of a run: a stream of order events with a known number of duplicates in it, and the result that an
// exactly-once consumer must reach.
//
//	Generate(n records) ─┐
//	                     ├─▶ Plan ─▶ Records(): original, the same again, …, republished later ─▶ Produce ─▶ topic
//	FromCSV(N orders)  ──┘     └───▶ Expected(): records, unique, duplicates by kind, sums per currency
//
// A plan is a pure function of its seed and start: walking it again yields the same bytes, in memory that does not depend on
// its length. It is written without the service's own code for events and money, so that the two check each other.
package orders
