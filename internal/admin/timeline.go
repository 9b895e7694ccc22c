package admin

import (
	"time"

	"example.com/billing/internal/domain"
)

// momentView is an entry of an event's story: when, what, and what goes with its kind.
// What does not go with it, or is not known, is not there.
type momentView struct {
	At   time.Time         `json:"at"`
	What domain.MomentKind `json:"what"`

	Source    *sourceView          `json:"source,omitempty"`
	Group     string               `json:"group,omitempty"`
	Duplicate domain.DuplicateKind `json:"kind,omitempty"`
	Attempts  *int                 `json:"attempts,omitempty"`
	LastError string               `json:"last_error,omitempty"`
	State     domain.IntentState   `json:"state,omitempty"`
	Owner     string               `json:"owner,omitempty"`
	Until     *time.Time           `json:"until,omitempty"`
	Answer    string               `json:"answer,omitempty"`

	Status           domain.ChargeStatus `json:"status,omitempty"`
	ProviderChargeID string              `json:"provider_charge_id,omitempty"`
	DeclineCode      string              `json:"decline_code,omitempty"`

	LetterID int64          `json:"letter_id,omitempty"`
	Reason   domain.Reason  `json:"reason,omitempty"`
	Detail   string         `json:"detail,omitempty"`
	By       string         `json:"by,omitempty"`
	Why      string         `json:"why,omitempty"`
	Outcome  domain.Outcome `json:"outcome,omitempty"`
	Result   domain.Result  `json:"result,omitempty"`
}

func viewTimeline(moments []domain.Moment) []momentView {
	views := make([]momentView, len(moments))
	for i := range moments {
		views[i] = viewMoment(&moments[i])
	}
	return views
}

func viewMoment(m *domain.Moment) momentView {
	view := momentView{
		At: m.At.UTC(), What: m.What, Group: m.Group, Duplicate: m.Duplicate, LastError: m.LastError,
		State: m.State, Owner: m.Owner, Reason: m.Reason, Detail: m.Detail,
	}
	if m.Source != nil {
		source := viewSource(*m.Source)
		view.Source = &source
	}
	if m.What == domain.MomentAttempts || m.What == domain.MomentOutcome {
		view.Attempts = &m.Attempts
	}
	if m.What == domain.MomentLeased {
		view.Until = instant(m.At)
	}
	if a := m.Answer; a != nil {
		view.Answer, view.ProviderChargeID, view.DeclineCode = a.Kind.String(), a.ProviderChargeID, a.DeclineCode
	}
	if c := m.Charge; c != nil {
		view.Status, view.ProviderChargeID, view.DeclineCode = c.Status, c.ProviderChargeID, c.DeclineCode
	}
	if m.Letter != nil {
		view.LetterID = m.Letter.ID
	}
	if a := m.Action; a != nil {
		view.LetterID, view.By, view.Why, view.Outcome, view.Result = a.LetterID, a.By, a.Why, a.Outcome, a.Result
	}
	return view
}

// logView says how much of an event's duplicates is known.
type logView struct {
	// Since is when the oldest duplicate that the log still holds was seen, of whatever
	// event; null while the log is empty.
	Since *time.Time `json:"since"`
	// More says that the log holds more of this event than are shown.
	More bool `json:"more"`
	// MayLack says that there may have been others: not shown, or forgotten by the log.
	MayLack bool `json:"may_lack"`
}

func viewLog(story *domain.EventStory) logView {
	return logView{Since: instant(story.LogBegins), More: story.MoreDuplicates, MayLack: story.MayLackDuplicates()}
}
