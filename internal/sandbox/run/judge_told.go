package run

import (
	"fmt"

	"github.com/google/uuid"
)

// told: the world was told of every charge once, and of every dead letter.
func (j *judge) told() {
	j.toldOutcomes()
	j.toldLetters()
}

func (j *judge) toldOutcomes() {
	o := &j.f.Outcomes
	if o.Events == nil {
		j.skip("outcome events", 0, "none were to be published")
		return
	}
	var wrong int64
	example := ""
	note := func(id uuid.UUID, what string) {
		wrong++
		example = fmt.Sprintf("; not so %s: %s", id, what)
	}
	expected := int64(0)
	for _, id := range j.f.Book.ids() {
		c := j.f.Book.Charges[id]
		if c.Status != "captured" && c.Status != "declined" {
			continue
		}
		expected++
		want := Outcome{
			Type: "billing.charge-" + c.Status + ".v1", OrderEvent: id, OrderID: c.OrderID, Amount: c.Amount, Currency: c.Currency,
		}
		told, some := o.Events[uuid.NewSHA1(id, []byte(want.Type))]
		switch {
		case !some:
			note(id, c.Status+" and never told")
		case !told.same(want):
			note(id, "told with another type, order or amount")
		}
	}
	n := int64(len(o.Events))
	j.line("outcome events", n, wrong == 0 && o.Strange == 0 && n == expected,
		"one for each of %s captures and declines; %s published twice%s", number(expected), number(o.Records-n-o.Strange), example)
}

func (j *judge) toldLetters() {
	t := &j.f.Told
	if t.Letters == nil {
		j.skip("dead letters told", 0, "none were to be published")
		return
	}
	missing := 0
	for _, l := range j.f.Book.Letters {
		if t.Letters[l.Source] != l.Reason {
			missing++
		}
	}
	n := int64(len(t.Letters))
	j.line("dead letters told", n, missing == 0 && len(t.Letters) == len(j.f.Book.Letters),
		"as many as there are, with their reasons; %s published again", number(t.Records-n))
}
