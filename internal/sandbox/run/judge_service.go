package run

import (
	"fmt"
	"maps"

	"github.com/google/uuid"
)

// arrivals: what was produced is in the topic, and was seen.
func (j *judge) arrivals() {
	f, r := j.f, &j.report
	r.Records, r.Unique, r.Processed = f.Sent.Records, f.Sent.Unique, f.Book.Processed
	j.line("records", f.Sent.Records, f.Topic.Records == f.Sent.Records && f.Topic.Foreign == f.Sent.Invalid,
		"a second consumer reads %s, %s of them not ours", number(f.Topic.Records), number(f.Topic.Foreign-f.Sent.Invalid))
	events := int64(len(f.Topic.Events))
	j.line("unique events", f.Sent.Unique, events == f.Sent.Unique && f.Book.Processed == f.Sent.Unique,
		"%s in the topic, %s in processed_event", number(events), number(f.Book.Processed))
	sent := f.Sent.Records - f.Sent.Unique - f.Sent.Invalid
	again := sent - f.Sent.Conflicting
	note := ""
	if f.Sent.Conflicting > 0 {
		note = fmt.Sprintf(", %s with another amount", number(f.Sent.Conflicting))
	}
	j.line("duplicates sent", sent, again == f.Sent.Same+f.Sent.Republished,
		"%s byte for byte, %s encoded anew%s", number(f.Sent.Same), number(f.Sent.Republished), note)
	c := f.Book.Counters
	r.Duplicates = DuplicateFacts{
		Sent: sent, SentSame: f.Sent.Same, SentRepublished: f.Sent.Republished, SentConflicting: f.Sent.Conflicting,
		Total: c.Duplicates(), Redelivered: c.Redelivered, Republished: c.Republished, Conflicting: c.Conflicting,
		Delays: f.Book.Delays,
	}
	seen := func(ok bool, as string) {
		j.line("duplicates seen", c.Duplicates(), ok && c.Conflicting == f.Sent.Conflicting, "%s redelivered, %s republished, %s conflicting: %s",
			number(c.Redelivered), number(c.Republished), number(c.Conflicting), as)
	}
	if j.quiet {
		seen(c.Redelivered == 0 && c.Republished == again, "as sent")
	} else { // what Kafka delivers again after a kill or a rebalance is counted on top
		seen(c.Redelivered+c.Republished >= again, "as sent or more")
	}
}

// outcomes: every event came to exactly one end.
func (j *judge) outcomes() {
	f, r := j.f, &j.report
	r.Captured, r.Declined = j.statuses["captured"], j.statuses["declined"]
	r.DuplicateOrder, r.Discarded = j.statuses["duplicate_order"], j.statuses["discarded"]
	wrong, example := j.disagreements()
	j.line("charged", r.Captured, wrong == 0, "the same orders and amounts at the provider%s", example)
	if r.Declined > 0 || j.f.Setup.Faulty {
		j.line("declined", r.Declined, r.Declined == f.Ledger.Declined, "the provider declined %s", number(f.Ledger.Declined))
	}
	if r.DuplicateOrder > 0 || r.Discarded > 0 {
		j.skip("order charged already", r.DuplicateOrder+r.Discarded, "a second event of a charged order is not charged")
	}
	r.Invalid, r.Parked = f.Book.Counters.Invalid, int64(len(f.Book.Letters))
	j.line("invalid", r.Invalid, r.Invalid == f.Sent.Invalid, "%s of the records sent are not valid", number(f.Sent.Invalid))
	if f.Setup.Faulty {
		j.skip("parked", r.Parked, "a provider that fails may be the reason"+reasons(f.Book.Letters))
	} else {
		j.line("parked", r.Parked, r.Parked == f.Book.unasked(), "no reason to give one up%s", reasons(f.Book.Letters))
	}
	claimed, unclaimed := f.Book.Unfinished()
	r.Unfinished = claimed + unclaimed
	j.line("unfinished", r.Unfinished, r.Unfinished == 0, "%s of them not claimed", number(unclaimed))
	var invented int64
	r.Lost, invented = j.lost()
	j.line("lost", r.Lost, r.Lost == 0 && invented == 0,
		"events without an end; %s charges of no event", number(invented))
	r.Lag = f.Lag
	j.line("lag", r.Lag, r.Lag == 0, "records of the topic below no committed offset")
}

// lost counts the events without an end, and the ends without an event.
func (j *judge) lost() (lost, invented int64) {
	ended := make(map[uuid.UUID]bool, len(j.f.Book.Letters))
	for _, l := range j.f.Book.Letters {
		if l.Reason != conflictingPayload { // which says nothing about the event itself
			ended[l.EventID] = true
		}
	}
	for id := range j.f.Topic.Events {
		if _, charged := j.f.Book.Charges[id]; !charged && !ended[id] {
			lost++
		}
	}
	for id := range j.f.Book.Charges {
		if _, known := j.f.Topic.Events[id]; !known {
			invented++
		}
	}
	return lost, invented
}

// reasons lists the different reasons of dead letters.
func reasons(letters []Letter) string {
	if len(letters) == 0 {
		return ""
	}
	count := make(map[string]int64)
	for _, l := range letters {
		count[l.Reason]++
	}
	return ": " + list(count)
}

// counters: the service's own statistics are exact.
func (j *judge) counters() {
	b := &j.f.Book
	c := b.Counters
	claimed, _ := b.Unfinished()
	j.line("received", c.Received, c.Received == c.Processed+c.Duplicates()+c.Invalid && j.receivedFits(),
		"= %s processed + %s duplicates + %s invalid", number(c.Processed), number(c.Duplicates()), number(c.Invalid))
	ended := c.Captured + c.Declined + c.DuplicateOrder + c.Discard
	j.line("processed", c.Processed, c.Processed+c.Recovered == ended+claimed+b.Parked() && c.Processed == b.Processed,
		"= %s ended + %s unfinished + %s parked", number(ended), number(claimed), number(b.Parked()))
	agree := c.Captured == j.statuses["captured"] && c.Declined == j.statuses["declined"] &&
		c.DuplicateOrder == j.statuses["duplicate_order"] && c.Discard == j.statuses["discarded"] && c.Invalid == b.invalidLetters()
	j.line("counted as ended", ended, agree, "each counter is its number of rows in charge")
	same := len(j.f.Stats) > 0
	for _, s := range j.f.Stats {
		same = same && s.Counters == c && maps.Equal(s.Delays, b.Delays) && s.Unfinished == claimed && s.Parked == b.Parked()
	}
	j.line("statistics pages", int64(len(j.f.Stats)), same && len(j.f.Stats) == j.f.Running, "say what the tables say")
}

// receivedFits holds the deliveries against the records: a record is delivered at
// least once, and more than once only after something was disturbed.
func (j *judge) receivedFits() bool {
	received := j.f.Book.Counters.Received
	return received == j.f.Sent.Records || !j.quiet && received > j.f.Sent.Records
}
