package run

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/google/uuid"
)

// duplicates: each one is counted by how late it came, and the log of them tells
// no stories.
func (j *judge) duplicates() {
	b := &j.f.Book
	var sum int64
	var late []string
	for _, name := range delays() {
		sum += b.Delays[name]
		switch n := b.Delays[name]; {
		case n == 0:
		case name == "longer" || name == "forgotten":
			late = append(late, number(n)+" "+name)
		default:
			late = append(late, number(n)+" within "+name)
		}
	}
	if late == nil {
		late = []string{"none"}
	}
	j.line("delays", sum, sum == b.Counters.Duplicates(), "of the duplicates: %s", strings.Join(late, ", "))
	kinds := make(map[string]int64)
	example := ""
	for _, l := range b.Log {
		kinds[l.Kind]++
		if what := j.mislogged(l); what != "" {
			example = fmt.Sprintf("; not so %s: %s", l.Source, what)
		}
	}
	c := &b.Counters
	// A transaction logs only some of a flood.
	fits := kinds["redelivered"] <= c.Redelivered && kinds["republished"] <= c.Republished && kinds["conflicting"] <= c.Conflicting
	j.line("duplicates logged", int64(len(b.Log)), fits && example == "", "no more of a kind than there are, each by a record of its event%s", example)
}

// mislogged says why no record of the topic explains a line of the log; "" when one does.
func (j *judge) mislogged(l Logged) string {
	conflict, conflicting := j.f.Topic.Conflicting[l.Source]
	switch {
	case j.f.Topic.Events[l.EventID] == 0:
		return "of no event in the topic"
	case l.Kind == "conflicting" && conflict != l.EventID:
		return "it does not conflict"
	case l.Kind == "republished" && (conflicting || l.Source == l.First):
		return "not another record of the same meaning"
	case l.Kind == "redelivered" && l.Source != l.First && conflict != l.EventID: // a conflicting one again
		return "another record than the first one"
	}
	return ""
}

// recount holds the counters against what a second consumer reads in the topic and
// what the provider says of it, to the unit.
func (j *judge) recount() {
	f := j.f
	c := &f.Book.Counters
	var captured, declined, wrong int64
	example := ""
	for id, meaning := range f.Topic.Meanings {
		switch f.Charges[id].Status {
		case "captured":
			captured++
		case "declined":
			declined++
		}
		if charge, final := f.Book.Charges[id]; final && !meaning.asks(charge) {
			wrong++
			example = fmt.Sprintf("; not so %s: first asks for %s %s, in charge %s", id, meaning.Amount, meaning.Currency, charge.Amount.RatString())
		}
	}
	same := c.Processed == int64(len(f.Topic.Events)) && c.Captured == captured && c.Declined == declined && c.Invalid == f.Topic.Foreign
	j.line("recounted", c.Processed, same && wrong == 0, "from the topic and the provider: %s processed, %s captured, %s declined, %s invalid%s",
		number(int64(len(f.Topic.Events))), number(captured), number(declined), number(f.Topic.Foreign), example)
	if f.Sent.Conflicting == 0 && c.Conflicting == 0 && len(f.Topic.Conflicting) == 0 {
		return
	}
	parked := make(map[string]uuid.UUID)
	for _, l := range f.Book.Letters {
		if l.Reason == conflictingPayload {
			parked[l.Source] = l.EventID
		}
	}
	ok := c.Conflicting == int64(len(f.Topic.Conflicting)) && len(parked) == len(f.Topic.Conflicting)
	for at, id := range f.Topic.Conflicting {
		ok = ok && parked[at] == id
	}
	j.line("conflicting", c.Conflicting, ok, "%s in the topic give an event another amount, and %s dead letters are those",
		number(int64(len(f.Topic.Conflicting))), number(int64(len(parked))))
}

// asks reports whether a charge is what the record asks for.
func (m Meaning) asks(c Charge) bool {
	amount, ok := new(big.Rat).SetString(m.Amount)
	return ok && amount.Cmp(c.Amount) == 0 && m.OrderID == c.OrderID && m.Currency == c.Currency
}
