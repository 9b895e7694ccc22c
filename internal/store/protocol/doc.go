// Package protocol holds no code. Its tests run the whole protocol of a charge,
// use case and store together, on a real PostgreSQL: each rule that keeps an
// event from being charged twice, lost or stuck has the interleaving here that
// breaks it, and fails when the rule is taken out.
//
//	look_again   what was looked up before an intent stood counts no more
//	maybe_sent   what may have been sent is never called unsent again
//	token        an answer belongs to its lease; a capture counts always
//	crash        a process may die at any point
//	claimed      only claimed intents are finished; a crash orphans none
//	answers      answers outlive the transaction that was to record them
//	locks        nobody waits for each other in a circle
//	duplicates   twins, repetitions, and ids with another meaning
//	orders       two events of one order
//	unstorable   a failure stays alone
//	horizon      retries end, in a letter that keeps or frees the order
//	gate         what we do not send is no attempt
//	surprise     a capture never overwrites what is final
//	operator     a replay changes letter and intent together, and charges nothing twice
//	discard      an event that is given up stays given up, as the provider saw it
//	stray        an intent that no claim will ever come for is ended
//	recover      a record that can be read by now passes the claim like any other
//	random       all of it at once
//
// The instances of a test share a database, a provider that keeps a ledger, and
// a clock that stands still. They are brought to the interleaving by hooks
// between use case and store, and wait for signals, never for time.
package protocol
