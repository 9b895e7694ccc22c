package domain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// errDryRun rolls back what was decided only to be shown.
var errDryRun = errors.New("dry run")

// Operator acts on dead letters for people. It sends nothing itself: what goes
// round again is due for the worker of any instance, so that it may act from
// another process on the same store.
type Operator struct {
	policy  Policy
	decoder Decoder
	book    Book
	archive Archive
	finder  Finder
	clock   Clock
	log     *slog.Logger
}

// NewOperator returns an operator over a store. Finder, which may be nil, tells
// the provider's view to those who plan.
func NewOperator(p Policy, d Decoder, book Book, archive Archive, finder Finder, clock Clock, log *slog.Logger) *Operator {
	return &Operator{policy: p, decoder: d, book: book, archive: archive, finder: finder, clock: clock, log: log}
}

// Instruction is what an operator wants done to one letter.
type Instruction struct {
	LetterID int64
	Kind     ActionKind
	By       string // who: 1 to [MaxByBytes] bytes of text
	Why      string // at most [MaxWhyBytes] bytes; a discard needs one
	// Outcome is the provider's, for a discard: required where a charge may have
	// been sent; elsewhere "" stands for [OutcomeNotCharged].
	Outcome          Outcome
	ProviderChargeID string // with [OutcomeCharged], where it is known
}

// Done is what became of a letter, or would become of it.
type Done struct {
	Letter  Letter // as it is afterwards, without its bytes
	Result  Result
	Intent  *Intent // the unfinished charge as it was before; nil where there is none
	Charge  *Charge // the final charge as it was before
	Forward string  // what follows, in words
}

// Replay sends a dead letter round again. Both rows, letter and intent, are
// compared and changed in one transaction, and the worker does the rest. It
// returns [ErrNoLetter], a [*ConflictError] or an [*InputError] when it cannot
// be; any other error means that nobody knows, and that it may be tried again.
func (o *Operator) Replay(ctx context.Context, id int64, by, why string) (Done, error) {
	return o.act(ctx, Instruction{LetterID: id, Kind: ActionReplay, By: by, Why: why}, false)
}

// Discard gives an event up: it becomes final as the operator says, and later
// records of it are duplicates. Its errors are those of Replay.
func (o *Operator) Discard(ctx context.Context, i Instruction) (Done, error) {
	i.Kind = ActionDiscard
	return o.act(ctx, i, false)
}

// DryRun decides as the action would and takes it back. Its errors are those of
// Replay.
func (o *Operator) DryRun(ctx context.Context, i Instruction) (Done, error) {
	return o.act(ctx, i, true)
}

// handling is one letter under an operator's hands.
type handling struct {
	Instruction
	r      *ruling
	letter Letter // as it was read, open
	now    Letter // as it is to be
	done   Done
}

func (o *Operator) act(ctx context.Context, i Instruction, dry bool) (Done, error) {
	if err := i.check(); err != nil {
		return Done{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.policy.CommitMargin)
	defer cancel()
	h := &handling{Instruction: i}
	err := o.book.Aside(ctx, func(tx Tx) error {
		if err := o.handle(ctx, tx, h); err != nil {
			return err
		}
		h.r.turn = &letterTurn{was: h.letter, now: h.now, action: h.action()}
		if err := h.r.write(ctx, tx); err != nil {
			return err
		}
		if dry {
			return errDryRun
		}
		return nil
	})
	h.done.Letter = h.now
	switch {
	case errors.Is(err, errDryRun):
		return h.done, nil
	case errors.Is(err, ErrOrderTaken):
		return Done{}, &ConflictError{"another event of the order is being charged; wait for its end"}
	case errors.Is(err, ErrMoved):
		return Done{}, &ConflictError{"somebody else acted on it at the same moment; look again"}
	case err != nil:
		return Done{}, fmt.Errorf("%s dead letter %d: %w", i.Kind, i.LetterID, err)
	}
	o.log.InfoContext(ctx, "dead letter acted on", "letter", i.LetterID, "action", i.Kind, "by", i.By,
		"result", h.done.Result, "event_id", h.now.EventID)
	return h.done, nil
}

// handle reads the letter and decides what becomes of it. The rows of its event
// are locked; the letter, last in the order of locks, is compared when it is written.
func (o *Operator) handle(ctx context.Context, tx Tx, h *handling) error {
	letter, found, err := tx.Letter(ctx, h.LetterID)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrNoLetter
	case letter.State != LetterOpen:
		return &ConflictError{"it is not open: " + string(letter.State)}
	}
	policy := o.policy
	policy.Group = letter.Group // whose claim and counters it belongs to
	h.r = newRuling(&policy, o.clock.Now())
	h.letter, h.now = letter, letter
	h.now.Record.Key, h.now.Record.Value, h.now.Record.Headers = nil, nil, nil
	switch {
	case letter.EventID == uuid.Nil:
		return o.handleInvalid(ctx, tx, h)
	case letter.Reason == ReasonConflictingPayload:
		h.close("the event goes by its first record; this one is another's")
		return nil
	}
	return o.handleEvent(ctx, tx, h)
}

// handleEvent decides about the letter of an event's own intent.
func (o *Operator) handleEvent(ctx context.Context, tx Tx, h *handling) error {
	// What was accepted once stays so, whatever is required of new ones.
	event, err := Decoder{}.Decode(&h.letter.Record)
	if err != nil {
		return &ConflictError{"the kept record is not valid any more: " + err.Error()}
	}
	s, err := situate(ctx, tx, &event)
	if err != nil {
		return err
	}
	h.done.Charge = s.charge
	if s.intent != nil {
		before := *s.intent
		h.done.Intent = &before
	}
	switch {
	case s.intent == nil || s.intent.Record.Coordinates != h.letter.Record.Coordinates:
		h.close("there is no unfinished charge behind it")
		return nil
	case !s.intent.State.Dead():
		return &ConflictError{"its charge is under way: " + string(s.intent.State)}
	case !s.claims:
		return &ConflictError{"its record is not through yet; try again"}
	case h.Kind == ActionReplay:
		o.sendRound(h, s)
		return nil
	}
	return h.giveUp(ctx, tx, s)
}

// close ends the letter, and nothing else.
func (h *handling) close(forward string) {
	h.now.State = LetterResolved
	if h.Kind == ActionDiscard {
		h.now.State = LetterDiscarded
	}
	h.done.Result, h.done.Forward = ResultClosed, forward
}

func (h *handling) action() Action {
	return Action{
		LetterID: h.LetterID, Kind: h.Kind, By: h.By, Why: h.Why, Outcome: h.Outcome,
		Result: h.done.Result, At: h.r.now,
	}
}

// check looks at the instruction alone.
func (i *Instruction) check() error {
	if err := text("by", i.By, 1, MaxByBytes); err != nil {
		return err
	}
	if i.Kind == ActionReplay {
		return text("reason", i.Why, 0, MaxWhyBytes)
	}
	if err := text("reason", i.Why, 1, MaxWhyBytes); err != nil {
		return err
	}
	if err := text("providerChargeId", i.ProviderChargeID, 0, 255); err != nil {
		return err
	}
	switch i.Outcome {
	case "", OutcomeNotCharged, OutcomeCharged, OutcomeUnknown:
	default:
		return &InputError{"outcome", "must be not_charged, charged or unknown"}
	}
	if i.ProviderChargeID != "" && i.Outcome != OutcomeCharged {
		return &InputError{"providerChargeId", "goes with the outcome charged only"}
	}
	return nil
}

func text(field, s string, least, most int) error {
	switch {
	case len(s) > most:
		return &InputError{field, fmt.Sprintf("at most %d bytes", most)}
	case len(strings.TrimSpace(s)) < least:
		return &InputError{field, "is required"}
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &InputError{field, "must be text of one line"}
	}
	return nil
}
