package run

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/google/uuid"

	"example.com/billing/internal/payment/paymenttest"
)

// provider: how often it was asked, and what it took.
func (j *judge) provider() {
	f, r := j.f, &j.report
	r.Kills, r.Rolls = f.Kills, f.Rolls
	r.Posts, r.RepeatedPosts = f.Ledger.Posts, f.Ledger.RepeatedPosts
	disturbed := f.Setup.Faulty || len(f.Kills) > 0
	switch {
	case f.Setup.Faulty:
		j.skip("POSTs", r.Posts, "the provider was told to fail: a request may be repeated")
	case disturbed:
		j.line("POSTs", r.Posts, r.Posts >= f.Sent.Unique && f.Strange == 0, "at least one for each of %s unique events", number(f.Sent.Unique))
	default:
		j.line("POSTs", r.Posts, r.Posts == f.Sent.Unique && f.Strange == 0, "exactly one for each of %s unique events", number(f.Sent.Unique))
	}
	j.repeated()
	r.DoubleChargedKeys, r.DoubleChargedOrders = excess(f.Ledger.CapturesPerKey), excess(f.Ledger.CapturesPerOrder)
	r.DoubleCharges = f.Ledger.DoubleCharges
	j.line("double charges", r.DoubleCharges, r.DoubleCharges == 0 && r.DoubleChargedKeys == 0 && r.DoubleChargedOrders == 0,
		"%s of a key, %s of an order", number(r.DoubleChargedKeys), number(r.DoubleChargedOrders))
	var short int64
	for id := range f.Charges {
		c, final := f.Book.Charges[id]
		if final && c.Attempts < f.Charges[id].Posts {
			short++
		}
	}
	j.line("attempts not counted", short, short == 0, "charge.attempts covers every request")
}

// repeated: a request is repeated only where a kill left its charge unfinished.
func (j *judge) repeated() {
	f, r := j.f, &j.report
	allowed := make(map[uuid.UUID]int)
	inFlight := 0
	example := ""
	for i := range f.Kills {
		inFlight += len(f.Kills[i].Unfinished)
		for id := range f.Kills[i].Unfinished {
			allowed[id]++
		}
	}
	for id := range f.Charges {
		if over := f.Charges[id].Posts - 1 - allowed[id]; over > 0 {
			r.UnexplainedPosts += int64(over)
			example = fmt.Sprintf("; not so %s: %d POSTs, %d unfinished after a kill", id, f.Charges[id].Posts, allowed[id])
		}
	}
	if f.Setup.Faulty {
		j.skip("repeated POSTs", r.RepeatedPosts, "the provider was told to fail")
		return
	}
	j.line("repeated POSTs", r.RepeatedPosts, r.UnexplainedPosts == 0 && r.RepeatedPosts <= int64(inFlight),
		"%s not due to a kill; %s unfinished after the kills%s", number(r.UnexplainedPosts), number(int64(inFlight)), example)
}

// excess counts what happened more than once, beyond the first time.
func excess(perThing map[int]int64) (n int64) {
	for times, things := range perThing {
		if times > 1 {
			n += int64(times-1) * things
		}
	}
	return n
}

// disagreements counts the events of which the two books tell different stories,
// and shows one.
func (j *judge) disagreements() (n int64, example string) {
	f := j.f
	note := func(id uuid.UUID, format string, args ...any) {
		n++
		if n == 1 {
			example = fmt.Sprintf("; not so %s: %s", id, fmt.Sprintf(format, args...))
		}
	}
	for id, theirs := range f.Charges {
		ours, known := f.Book.Charges[id]
		switch {
		case theirs.Status == "captured" && ours.Status != "captured":
			note(id, "captured there, %q here", ours.Status)
		case theirs.Status == "declined" && ours.Status != "declined" && known:
			note(id, "declined there, %q here", ours.Status)
		case theirs.Status == "captured" && !sameCharge(ours, theirs):
			note(id, "order %d, %s %s there; order %d, %s %s here", theirs.OrderID, theirs.Amount, theirs.Currency,
				ours.OrderID, ours.Amount.RatString(), ours.Currency)
		}
	}
	for id := range f.Book.Charges {
		if status := f.Book.Charges[id].Status; status == "captured" && f.Charges[id].Status != "captured" {
			note(id, "captured here, %q there", f.Charges[id].Status)
		}
	}
	return n, example
}

func sameCharge(ours Charge, theirs paymenttest.Charge) bool {
	amount, ok := new(big.Rat).SetString(theirs.Amount)
	return ok && amount.Cmp(ours.Amount) == 0 && ours.Currency == theirs.Currency && ours.OrderID == theirs.OrderID
}

// conduct: what was asked for took place, and the service ended when told to.
func (j *judge) conduct() {
	f := j.f
	if f.Setup.Kills > 0 {
		note := ""
		if len(f.Kills) < f.Setup.Kills {
			note = ": all was done before the others; give it more records"
		}
		j.line("kills", int64(len(f.Kills)), len(f.Kills) == f.Setup.Kills, "of %d asked for%s", f.Setup.Kills, note)
	}
	left, disorder := j.rolls()
	ends, disorder := left+f.Running, append(disorder, f.Disorder...)
	j.line("ended cleanly", int64(ends-len(disorder)), len(disorder) == 0, "of %d instances%s",
		ends, strings.Join(append([]string{""}, disorder...), "; "))
}

// list writes counts by name, in the order of the names.
func list(count map[string]int64) string {
	parts := make([]string, 0, len(count))
	for _, name := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s %s", number(count[name]), name))
	}
	return strings.Join(parts, ", ")
}

// ledgerCharges are the provider's charges by key, and the number of keys that are no event id.
func ledgerCharges(p *paymenttest.Provider) (charges map[uuid.UUID]paymenttest.Charge, strange int) {
	charges = make(map[uuid.UUID]paymenttest.Charge)
	for c := range p.Charges() {
		id, err := uuid.Parse(c.Key)
		if err != nil || id.String() != c.Key {
			strange++
			continue
		}
		charges[id] = c
	}
	return charges, strange
}
