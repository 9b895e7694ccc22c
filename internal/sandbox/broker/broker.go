package payment

import (
	"example.com/billing/internal/domain"
)

// repeat says whether a quick attempt may follow at once, within the same Charge.
type repeat uint8

const (
	// never: it is decided, or repeating it quickly cannot change it.
	never repeat = iota
	// soon: after the back-off, or after Retry-After where that is longer.
	soon
	// whenTold: only if the provider said when, by Retry-After.
	whenTold
)

// meaning is a line of the table: what a range of statuses says about the money.
type meaning struct {
	from, to  int
	kind      domain.AnswerKind
	maybeSent bool // no definite answer: the charge may have been, or may yet be, carried out
	repeat    repeat
}

// table is the contract's table of answers. The first line that holds a status
// counts, and the last one holds every status.
func table() [15]meaning {
	return [...]meaning{
		{200, 299, domain.Captured, false, never}, // with a complete body; see incomplete
		{402, 402, domain.Declined, false, never},
		{409, 409, domain.Unknown, true, never}, // the same key is in progress: it needs time
		{422, 422, domain.KeyConflict, true, never},
		{401, 401, domain.Misconfigured, false, never},
		{403, 405, domain.Misconfigured, false, never},
		{407, 407, domain.Misconfigured, false, never},
		{300, 399, domain.Misconfigured, true, never}, // not followed: who redirects may have charged
		{408, 408, domain.Unknown, true, soon},
		{425, 425, domain.Unknown, true, soon},
		{429, 429, domain.Unknown, true, whenTold},
		{400, 499, domain.Rejected, false, never},
		{500, 599, domain.Unknown, true, soon},
		{100, 199, domain.Unknown, true, never}, // no final answer at all
		{0, 1<<31 - 1, domain.Unknown, true, never},
	}
}

// meaningOf looks a status up.
func meaningOf(status int) meaning {
	lines := table()
	for _, line := range lines {
		if line.from <= status && status <= line.to {
			return line
		}
	}
	return lines[len(lines)-1]
}

// incomplete is what remains of a meaning when the answer's body did not arrive
// whole. A capture is believed only as a whole; any other status has said all by
// itself.
func (m meaning) incomplete() meaning {
	if m.kind == domain.Captured {
		return unanswered()
	}
	return m
}

// unanswered is a request that was sent, perhaps in part, and got no answer.
func unanswered() meaning {
	return meaning{kind: domain.Unknown, maybeSent: true, repeat: soon}
}

// unsent is a request of which nothing left this process.
func unsent() meaning {
	return meaning{kind: domain.NotSent, repeat: soon}
}

// result is the answer to one attempt.
type result struct {
	domain.Answer
	repeat repeat
	told   bool // RetryAfter was given
}

func (m meaning) result(answer domain.Answer) result {
	answer.Kind, answer.MaybeSent = m.kind, m.maybeSent
	return result{Answer: answer, repeat: m.repeat}
}

// quick reports whether another attempt may help.
func (r result) quick() bool {
	return r.repeat == soon || r.repeat == whenTold && r.told
}

// fold adds the answer of a further attempt to what is known. The latest answer
// counts, with two exceptions: one that we withheld says nothing new, and once a
// request may have been sent that is never taken back, so that "surely not sent"
// turns into "unknown".
func fold(known, latest domain.Answer) domain.Answer {
	sum := latest
	if latest.Kind == domain.Withheld && known.Kind != domain.Withheld {
		sum = known
	}
	sum.Posts = known.Posts + latest.Posts
	sum.MaybeSent = known.MaybeSent || latest.MaybeSent
	if sum.MaybeSent && (sum.Kind == domain.NotSent || sum.Kind == domain.Withheld) {
		sum.Kind = domain.Unknown
	}
	return sum
}
