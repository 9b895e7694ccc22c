package audit

import (
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// subject is what an audit keeps of a record: what it means, and not its bytes.
type subject struct {
	at          domain.Coordinates
	timestamp   time.Time
	event       domain.Event // zero when the record is invalid
	fingerprint domain.Fingerprint
	invalid     bool
	// reached: the group had committed an offset behind it when the audit began.
	reached bool
}

// newSubject looks into a record. Ids of every version are accepted: what is
// required of new events says nothing about old ones.
func newSubject(r *domain.Record, committed int64) subject {
	s := subject{at: r.Coordinates, timestamp: r.Timestamp, reached: r.Offset < committed}
	event, err := domain.Decoder{}.Decode(r)
	if err != nil {
		s.invalid = true
		return s
	}
	s.event, s.fingerprint = event, event.Fingerprint()
	return s
}

// age is the instant that the deduplication window is measured from: the older
// of the record's timestamp and the time in a version 7 id; zero where the record
// has no timestamp.
func (s *subject) age() time.Time {
	if s.event.ID.Version() != 7 || s.timestamp.IsZero() {
		return s.timestamp
	}
	seconds, nanos := s.event.ID.Time().UnixTime()
	if made := time.Unix(seconds, nanos); made.Before(s.timestamp) {
		return made
	}
	return s.timestamp
}

// ids and coordinates of subjects, to ask for their evidence.
func keys(subjects []subject) (ids []uuid.UUID, at []domain.Coordinates) {
	at = make([]domain.Coordinates, len(subjects))
	seen := make(map[uuid.UUID]bool, len(subjects))
	for i := range subjects {
		at[i] = subjects[i].at
		id := subjects[i].event.ID
		if !subjects[i].invalid && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, at
}
