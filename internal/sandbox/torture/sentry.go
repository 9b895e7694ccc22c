package torture

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Repeat is a POST of a key that had one before.
type Repeat struct {
	Key uuid.UUID
	// Before is when the POST before it arrived, and Told whether that one was given a
	// definite answer, as far as the provider can know.
	Before time.Time
	Told   bool
	At     time.Time
	// Owned: an intent of the event was being called when the POST arrived. Unknown when
	// the database could not be asked.
	Owned, Unknown bool
}

// sentry stands before the provider and looks at every POST that repeats one.
type sentry struct {
	// owned asks the book whether an intent of the event is being called.
	owned func(ctx context.Context, key uuid.UUID) (bool, error)

	mu      sync.Mutex
	seen    map[uuid.UUID]*seenPost
	repeats []Repeat
}

// seenPost is the last POST of a key.
type seenPost struct {
	at   time.Time
	told bool
}

func newSentry(owned func(context.Context, uuid.UUID) (bool, error)) *sentry {
	return &sentry{owned: owned, seen: make(map[uuid.UUID]*seenPost)}
}

// all returns the repeats so far.
func (s *sentry) all() []Repeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Repeat(nil), s.repeats...)
}

// watch goes around the provider.
func (s *sentry) watch(provider http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := uuid.Parse(r.Header.Get("Idempotency-Key"))
		if r.Method != http.MethodPost || err != nil {
			provider.ServeHTTP(w, r)
			return
		}
		mine := &seenPost{at: time.Now()}
		s.mu.Lock()
		before := s.seen[key]
		s.seen[key] = mine
		var repeat *Repeat
		if before != nil {
			repeat = &Repeat{Key: key, Before: before.at, Told: before.told, At: mine.at}
		}
		s.mu.Unlock()
		if repeat != nil {
			s.note(r.Context(), *repeat)
		}
		answer := &answer{ResponseWriter: w}
		defer func() { // the provider may end a connection by a panic
			s.mu.Lock()
			defer s.mu.Unlock()
			mine.told = answer.definite() && r.Context().Err() == nil
		}()
		provider.ServeHTTP(answer, r)
	})
}

// note asks who sends, while its answer is still awaited: nobody has finished it.
func (s *sentry) note(ctx context.Context, r Repeat) {
	var err error
	r.Owned, err = s.owned(ctx, r.Key)
	r.Unknown = err != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeats = append(s.repeats, r)
}

// answer sees what the provider says.
type answer struct {
	http.ResponseWriter

	status int
	broken bool // taken over, or not written whole
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Hijack implements [http.Hijacker]: what becomes of the connection is not seen.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.broken = true
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// definite reports whether the answer settles the charge by the contract.
func (a *answer) definite() bool {
	switch {
	case a.broken:
		return false
	case a.status/100 == 2, a.status == http.StatusPaymentRequired, a.status == http.StatusUnprocessableEntity:
		return true
	}
	return false
}
