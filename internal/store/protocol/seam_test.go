package protocol_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// point is a place between the use case and the store where a test may step in.
type point string

const (
	mainLooked    point = "main transaction has looked"
	mainWrites    point = "main transaction writes"
	mainWrote     point = "main transaction has written intents and charges"
	mainCommits   point = "main transaction commits"
	mainCommitted point = "main transaction has committed"
	openBegins    point = "intents are committed aside"
	openEnds      point = "intents stand"
	takeLooked    point = "worker has looked, and not leased"
	sideBegins    point = "side transaction begins"
	sideLooked    point = "side transaction has looked"
	sideCommits   point = "side transaction commits"
	sideCommitted point = "side transaction has committed"
)

var errLost = errors.New("lost by the test")

// seam is a store that tests step into: a hook may wait, look at the database,
// move the clock, run another instance, or return an error, which loses what was
// under way.
type seam struct {
	inner domain.Book
	idle  chan struct{} // signalled when the worker finds nothing due
	end   func()        // ends what the process was asked to bill

	mu    sync.Mutex
	hooks map[point][]func() error
	trace []point
	dead  bool
	chaos func(point) error // asked at every point without a hook, when set
}

func newSeam(inner domain.Book, end func()) *seam {
	return &seam{inner: inner, end: end, idle: make(chan struct{}, 1), hooks: map[point][]func() error{}}
}

// once runs hook when the point is reached the next time. Several hooks of a
// point are used up in turn.
func (s *seam) once(p point, hook func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks[p] = append(s.hooks[p], hook)
}

// pauseAt makes the instance wait at the point: reached is closed when it does,
// and closing release lets it go on.
func (s *seam) pauseAt(p point) (reached, release chan struct{}) {
	reached, release = make(chan struct{}), make(chan struct{})
	s.once(p, func() error {
		close(reached)
		select {
		case <-release:
			return nil
		case <-time.After(patience):
			return errors.New("never released")
		}
	})
	return reached, release
}

// kill ends the process: its open transaction is lost and it reaches the
// database no more.
func (s *seam) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	s.end()
	return errLost
}

func (s *seam) reach(p point) error {
	s.mu.Lock()
	s.trace = append(s.trace, p)
	if s.dead {
		s.mu.Unlock()
		return errLost
	}
	var hook func() error
	if waiting := s.hooks[p]; len(waiting) > 0 {
		hook, s.hooks[p] = waiting[0], waiting[1:]
	}
	if hook == nil && s.chaos != nil {
		hook = func() error { return s.chaos(p) }
	}
	s.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook()
}

// reached returns the points passed so far.
func (s *seam) reached() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trace)
}

func (s *seam) forgetIdle() {
	select {
	case <-s.idle:
	default:
	}
}

func (s *seam) Transact(ctx context.Context, fn func(domain.Tx) error) error {
	err := s.inner.Transact(ctx, func(tx domain.Tx) error {
		if err := fn(&seamTx{Tx: tx, seam: s}); err != nil {
			return err
		}
		return s.reach(mainCommits)
	})
	if err == nil {
		err = s.reach(mainCommitted)
	}
	return err
}

func (s *seam) Aside(ctx context.Context, fn func(domain.Tx) error) error {
	if err := s.reach(sideBegins); err != nil {
		return err
	}
	t := &seamTx{seam: s, side: true}
	err := s.inner.Aside(ctx, func(tx domain.Tx) error {
		t.Tx = tx
		if err := fn(t); err != nil || t.empty {
			return err
		}
		return s.reach(sideCommits)
	})
	if err == nil && !t.empty {
		err = s.reach(sideCommitted)
	}
	return err
}

func (s *seam) Open(ctx context.Context, intents []domain.Intent) (map[uuid.UUID]bool, error) {
	if err := s.reach(openBegins); err != nil {
		return nil, err
	}
	opened, err := s.inner.Open(ctx, intents)
	if err == nil {
		err = s.reach(openEnds)
	}
	return opened, err
}

// seamTx is one transaction of a seam.
type seamTx struct {
	domain.Tx
	seam  *seam
	side  bool
	take  bool // the worker's: it has asked for a due intent
	empty bool // and there was none
}

func (t *seamTx) Due(ctx context.Context, now time.Time) (*domain.Intent, error) {
	t.take = true
	in, err := t.Tx.Due(ctx, now)
	t.empty = in == nil
	if t.empty {
		select {
		case t.seam.idle <- struct{}{}:
		default:
		}
	}
	return in, err
}

func (t *seamTx) Stray(ctx context.Context, now time.Time) (*domain.Intent, error) {
	in, err := t.Tx.Stray(ctx, now)
	t.empty = in == nil
	return in, err
}

func (t *seamTx) Look(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	return t.looked(t.Tx.Look(ctx, subjects))
}

func (t *seamTx) Final(ctx context.Context, subjects []domain.Subject) (domain.Facts, error) {
	return t.looked(t.Tx.Final(ctx, subjects))
}

func (t *seamTx) looked(facts domain.Facts, err error) (domain.Facts, error) {
	if err != nil {
		return facts, err
	}
	switch {
	case t.take:
		err = t.seam.reach(takeLooked)
	case t.side:
		err = t.seam.reach(sideLooked)
	default:
		err = t.seam.reach(mainLooked)
	}
	return facts, err
}

func (t *seamTx) Write(ctx context.Context, w domain.Writes) error {
	if t.side {
		return t.Tx.Write(ctx, w)
	}
	if err := t.seam.reach(mainWrites); err != nil {
		return err
	}
	if err := t.Tx.Write(ctx, w); err != nil {
		return err
	}
	return t.seam.reach(mainWrote)
}

func (s *seam) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}
