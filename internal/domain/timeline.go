package domain

import (
	"slices"
	"time"
)

// MomentKind is what happened at a moment of an event's story.
type MomentKind string

// The kinds of moments, in their natural order: that of those with the same time.
const (
	MomentSeen         MomentKind = "seen"             // the record that the event is known by came
	MomentClaimed      MomentKind = "claimed"          // its claim stands in processed_event
	MomentIntended     MomentKind = "intent_committed" // before anything could be sent
	MomentFirstAttempt MomentKind = "first_attempt"    // something may have been sent from then on
	MomentAttempts     MomentKind = "attempts"         // how many, from then on
	MomentAnswered     MomentKind = "answered"         // a definite answer was put down, not yet claimed or finished
	MomentDuplicate    MomentKind = "duplicate"        // a record repeated it
	MomentParked       MomentKind = "parked"           // it, or a record of it, became a dead letter
	MomentReplayed     MomentKind = "replayed"         // an operator sent the letter round
	MomentDiscarded    MomentKind = "discarded"        // an operator gave the letter up
	MomentOutcome      MomentKind = "outcome"          // its charge became final
	MomentResolved     MomentKind = "resolved"         // its letter was closed with it
	MomentLeased       MomentKind = "leased"           // somebody may send until then
	MomentDue          MomentKind = "due"              // it goes on by itself then
)

// MomentKinds lists every kind, in the natural order.
func MomentKinds() []MomentKind {
	return []MomentKind{
		MomentSeen, MomentClaimed, MomentIntended, MomentFirstAttempt, MomentAttempts, MomentAnswered, MomentDuplicate,
		MomentParked, MomentReplayed, MomentDiscarded, MomentOutcome, MomentResolved, MomentLeased, MomentDue,
	}
}

// Moment is an entry of an event's story. At is a time that is stored somewhere;
// what is not known any more has no entry. Beside At and What it holds what its
// kind says; all else is zero.
type Moment struct {
	At   time.Time
	What MomentKind

	Source    *Coordinates  // seen, duplicate, parked: the record
	Group     string        // claimed: by whom
	Attempts  int           // attempts, outcome: an upper bound on the requests sent
	LastError string        // attempts
	Owner     string        // leased: the process
	Answer    *Answer       // answered
	State     IntentState   // due
	Charge    *Charge       // outcome
	Duplicate DuplicateKind // duplicate
	Letter    *Letter       // parked, resolved
	Reason    Reason        // parked; "" where a later parking of the same record has overwritten it
	Detail    string        // likewise
	Action    *Action       // replayed, discarded
}

// MaxStoryDuplicates bounds the duplicates that a story tells of.
const MaxStoryDuplicates = 100

// Timeline tells the story in the order of time. Moments of one instant are in
// their natural order. The claim's time is the database's and all others are those of
// our processes: where the clocks differ, neighbours may stand the other way round.
func (s *EventStory) Timeline() []Moment {
	var t []Moment
	t = s.beginning(t)
	t = s.effort(t)
	t = s.duplicates(t)
	t = s.letters(t)
	t = s.ending(t)
	order := map[MomentKind]int{}
	for i, kind := range MomentKinds() {
		order[kind] = i
	}
	slices.SortStableFunc(t, func(a, b Moment) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return order[a.What] - order[b.What]
	})
	return t
}

// beginning tells when the event was first seen: by processed_event, or by the log
// of duplicates where that has forgotten it.
func (s *EventStory) beginning(t []Moment) []Moment {
	if s.Sighting != nil && s.ProcessedAt != nil {
		return append(t,
			Moment{At: *s.ProcessedAt, What: MomentSeen, Source: &s.Sighting.Source},
			Moment{At: *s.ProcessedAt, What: MomentClaimed, Group: s.Group})
	}
	var first *Duplicate
	for i := range s.Duplicates {
		d := &s.Duplicates[i]
		if !d.FirstSeenAt.IsZero() && d.First.Topic != "" && (first == nil || d.FirstSeenAt.Before(first.FirstSeenAt)) {
			first = d
		}
	}
	if first != nil {
		t = append(t, Moment{At: first.FirstSeenAt, What: MomentSeen, Source: &first.First})
	}
	return t
}

// effort tells what was undertaken to charge it.
func (s *EventStory) effort(t []Moment) []Moment {
	switch in, c := s.Intent, s.Charge; {
	case in != nil:
		t = undertaken(t, in.CreatedAt, in.FirstAttemptAt, in.Attempts, in.LastError)
		switch in.State {
		case Answered:
			// Due since it was put down, or put off since; no other time is stored.
			t = append(t, Moment{At: in.DueAt, What: MomentAnswered, Answer: in.Answer})
		case Calling:
			t = append(t, Moment{At: in.LeaseUntil, What: MomentLeased, Owner: in.Owner})
		case Waiting, UnknownOutcome:
			t = append(t, Moment{At: in.DueAt, What: MomentDue, State: in.State})
		case Parked, Held: // it waits for an operator
		}
	case c != nil:
		t = undertaken(t, c.IntendedAt, c.FirstAttemptAt, c.Attempts, "")
	}
	return t
}

func undertaken(t []Moment, intended, first time.Time, attempts int, lastError string) []Moment {
	if !intended.IsZero() {
		t = append(t, Moment{At: intended, What: MomentIntended})
	}
	since := intended // of attempts that surely sent nothing the first one is not kept
	if !first.IsZero() {
		t = append(t, Moment{At: first, What: MomentFirstAttempt})
		since = first
	}
	if attempts > 0 && !since.IsZero() {
		t = append(t, Moment{At: since, What: MomentAttempts, Attempts: attempts, LastError: lastError})
	}
	return t
}

func (s *EventStory) duplicates(t []Moment) []Moment {
	for i := range slices.Backward(s.Duplicates) {
		d := &s.Duplicates[i]
		t = append(t, Moment{At: d.SeenAt, What: MomentDuplicate, Source: &d.Record, Duplicate: d.Kind})
	}
	return t
}

// letters tells what was parked, and what operators did about it.
func (s *EventStory) letters(t []Moment) []Moment {
	for i := range slices.Backward(s.Letters) {
		t = s.parked(t, &s.Letters[i])
	}
	for i := range slices.Backward(s.Actions) {
		a := &s.Actions[i]
		what := MomentReplayed
		if a.Kind == ActionDiscard {
			what = MomentDiscarded
		}
		t = append(t, Moment{At: a.At, What: what, Action: a})
	}
	return t
}

// parked tells when a record was parked: first, and once more where that is known.
// Its row keeps the reason of the last time only.
func (s *EventStory) parked(t []Moment, l *Letter) []Moment {
	rounds, overwritten, turned := 0, false, false
	for i := range s.Actions {
		a := &s.Actions[i]
		if a.LetterID != l.ID {
			continue
		}
		switch a.Result {
		case ResultStillInvalid, ResultConflicting: // looked at again, and open as it was
			overwritten = true
			turned = turned || a.At.Equal(l.ChangedAt)
		case ResultSentRound, ResultRecovered, ResultDuplicate, ResultClosed, ResultDiscarded, ResultCaptured:
			rounds++
		}
	}
	again := l.State == LetterOpen && l.ChangedAt.After(l.At) && !turned
	first := Moment{At: l.At, What: MomentParked, Source: &l.Record.Coordinates, Letter: l}
	if !again && rounds <= 1 && !overwritten {
		first.Reason, first.Detail = l.Reason, l.Detail
	}
	t = append(t, first)
	if again {
		t = append(t, Moment{
			At: l.ChangedAt, What: MomentParked, Source: &l.Record.Coordinates, Letter: l, Reason: l.Reason, Detail: l.Detail,
		})
	}
	if l.State == LetterResolved {
		t = append(t, Moment{At: l.ChangedAt, What: MomentResolved, Letter: l})
	}
	return t
}

func (s *EventStory) ending(t []Moment) []Moment {
	if c := s.Charge; c != nil {
		t = append(t, Moment{At: c.SettledAt, What: MomentOutcome, Charge: c, Attempts: c.Attempts})
	}
	return t
}

// MayLackDuplicates reports whether the log of duplicates may have known more of
// them than the story tells: it holds more, or it begins after the event did and
// has forgotten what came before.
func (s *EventStory) MayLackDuplicates() bool {
	if s.MoreDuplicates {
		return true
	}
	if s.LogBegins.IsZero() || !s.LogCut {
		return false // it has forgotten nothing yet
	}
	begun := time.Time{}
	switch {
	case s.ProcessedAt != nil:
		begun = *s.ProcessedAt
	case s.Charge != nil:
		begun = s.Charge.IntendedAt
	case s.Intent != nil:
		begun = s.Intent.CreatedAt
	}
	return begun.Before(s.LogBegins)
}
