package protocol_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/billing/internal/domain"
)

var duplicatesFlag = flag.Int("protocol.duplicates", 6000, "how many duplicates flood the ranges of processed_event")

const (
	floodLanes   = 3
	floodBatch   = 256
	floodWindow  = 7 * 24 * time.Hour
	floodDays    = 9   // ranges of a day, the last one that of tomorrow
	floodNonV7   = 40  // events whose id has no time in it
	floodRepeats = 100 // of each event, about
)

// flood is a world with ranges of a day, and events whose ids lie at every kind of
// place: within ranges and at their bounds, in none of them, in the far future, before
// the window, and without a time in them.
type flood struct {
	*world
	events  []event
	outside map[uuid.UUID]bool // older than the window
	ahead   int64              // of the clock, by more than a second
}

func newFlood(t *testing.T) *flood {
	t.Helper()
	f := &flood{world: newWorld(t), outside: map[uuid.UUID]bool{}}
	f.policy.DedupRetention = floodWindow
	now := f.clock.Now()
	for d := range floodDays {
		f.exec(fmt.Sprintf(`CREATE TABLE day_%d PARTITION OF processed_event FOR VALUES FROM ('%s') TO ('%s')`, d, below(f.day(d)), below(f.day(d+1))))
	}
	for d := range floodDays + 1 {
		for _, at := range []time.Time{f.day(d), f.day(d).Add(-time.Millisecond), f.day(d).Add(9 * time.Hour)} {
			f.add(v7(at, 0x00), at)
			f.add(v7(at, 0xff), at)
			f.add(v7(at, byte(0x11*d+1)), at)
		}
	}
	f.add(v7(now.Add(-floodWindow), 0), now.Add(-floodWindow))
	f.add(v7(now.Add(-floodWindow-time.Millisecond), 0), now.Add(-floodWindow-time.Millisecond))
	for _, ago := range []time.Duration{8, 30, 400, 20_000} { // days
		at := now.Add(-ago * 24 * time.Hour)
		f.add(v7(at, byte(ago)), at)
	}
	for _, in := range []time.Duration{time.Second, time.Second + time.Millisecond, 48 * time.Hour, 10 * 365 * 24 * time.Hour} {
		f.add(v7(now.Add(in), 0x5a), now.Add(in))
	}
	f.add(uuid.MustParse("ffffffff-ffff-7fff-bfff-ffffffffffff"), now.Add(1<<62))
	for range floodNonV7 {
		f.add(uuid.New(), now)
	}
	dice := rand.New(rand.NewPCG(0, 0))
	for range *duplicatesFlag / floodRepeats { // anywhere within the window
		at := now.Add(-time.Duration(dice.Int64N(int64(floodWindow))))
		f.add(v7Of(at, uuid.New()), at)
	}
	return f
}

// day is the beginning of the d-th range.
func (f *flood) day(d int) time.Time {
	return f.clock.Now().Truncate(24*time.Hour).AddDate(0, 0, d-floodDays+2)
}

func (f *flood) add(id uuid.UUID, at time.Time) {
	f.t.Helper()
	e := f.eventOf(id, int64(len(f.events)+1), "10.50")
	f.events = append(f.events, e)
	f.outside[id] = at.Before(f.clock.Now().Add(-floodWindow))
	if at.Sub(f.clock.Now()) > time.Second {
		f.ahead++
	}
}

// v7 returns an id of version 7, all of its free bytes the same.
func v7(at time.Time, rest byte) uuid.UUID {
	return v7Of(at, uuid.UUID(bytes.Repeat([]byte{rest}, 16)))
}

// v7Of makes another id one of version 7 and of an instant.
func v7Of(at time.Time, id uuid.UUID) uuid.UUID {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// below is the bound of a range: not above any id of the instant.
func below(at time.Time) uuid.UUID {
	id := v7(at, 0)
	id[6], id[8] = 0, 0
	return id
}

// sent counts what a lane has sent.
type sent struct{ redelivered, republished, conflicting int64 }

// pour bills duplicates of events that were seen before, in full batches, in several
// instances at once, and returns how many of which kind there were.
func (f *flood) pour(n int, seed uint64) (all sent) {
	f.t.Helper()
	lanes := make([]sent, floodLanes)
	var group errgroup.Group
	for lane := range floodLanes {
		one := f.instance(fmt.Sprint("lane ", lane))
		dice := rand.New(rand.NewPCG(seed, uint64(lane)))
		group.Go(func() error {
			for left := (n + lane) / floodLanes; left > 0; left -= floodBatch {
				batch := make([]domain.Record, min(left, floodBatch))
				for i := range batch {
					batch[i] = f.again(dice, int32(1+lane), &lanes[lane])
				}
				if err := billAgain(one, batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(f.t, group.Wait())
	for _, l := range lanes {
		all.redelivered += l.redelivered
		all.republished += l.republished
		all.conflicting += l.conflicting
	}
	return all
}

// billAgain bills a batch until it is through, as a lane does.
func billAgain(one *instance, batch []domain.Record) (err error) {
	for range 20 {
		if err = one.Bill(context.WithoutCancel(one.t.Context()), domain.Pass{}, batch); err == nil {
			return nil
		}
	}
	return err
}

// again returns a record of an event that was seen before.
func (f *flood) again(dice *rand.Rand, partition int32, count *sent) domain.Record {
	e := f.events[dice.IntN(len(f.events))]
	switch dice.IntN(100) {
	case 0:
		count.conflicting++
		other := e.record
		other.Value = bytes.Replace(other.Value, []byte(`"10.50"`), []byte(`"10.51"`), 1)
		return f.republished(partition, other)
	case 1, 2, 3, 4, 5, 6, 7, 8, 9:
		count.redelivered++
		return e.record
	default:
		count.republished++
		return f.republished(partition, e.record)
	}
}

// Duplicates across the bounds of ranges, of ids without a time, of the future and from
// before the window: every one is known, and counted as what it is.
//
//	go test ./internal/store/protocol -run TestAFloodOfDuplicatesIsKnownWhereverItsIdLies -protocol.duplicates 1000000 -timeout 30m
func TestAFloodOfDuplicatesIsKnownWhereverItsIdLies(t *testing.T) {
	t.Parallel()
	f := newFlood(t)
	fresh := make([]domain.Record, len(f.events))
	for i, e := range f.events {
		fresh[i] = e.record
	}
	one := f.instance("first")
	for batch := range slices.Chunk(fresh, floodBatch) {
		one.mustBill(batch...)
	}
	var old int64
	for _, e := range f.events {
		if f.outside[e.id] {
			old++
		}
	}
	first := f.counters()
	events := int64(len(f.events))
	require.Equal(t, domain.Counters{Received: events, Processed: events, Captured: events - old, NonV7: floodNonV7}, first)
	ahead, _ := f.leads()
	require.Equal(t, f.ahead, ahead)

	began := time.Now()
	poured := f.pour(*duplicatesFlag-*duplicatesFlag/5, 1)
	n := f.counters()
	seen := sent{n.Redelivered, n.Republished, n.Conflicting}
	require.Equal(t, poured, seen, "of each kind, to the unit")
	f.unharmed(first, old)

	// Retention empties a range: its events are known by their charges.
	f.exec(fmt.Sprintf("TRUNCATE day_%d", floodDays-3))
	more := f.pour(*duplicatesFlag/5, 2)
	n = f.counters()
	require.Equal(t, poured.conflicting+more.conflicting, n.Conflicting)
	require.Equal(t, poured.redelivered+poured.republished+more.redelivered+more.republished, n.Redelivered+n.Republished)
	require.Positive(t, f.delays()[domain.DelayForgotten])
	f.unharmed(first, old)
	t.Logf("%d duplicates of %d events in %s", n.Duplicates(), events, time.Since(began).Round(time.Millisecond))
}

// unharmed requires that the flood changed nothing but the counts of duplicates, and
// that no event was asked for twice, or at all where it lies before the window.
func (f *flood) unharmed(first domain.Counters, old int64) {
	f.t.Helper()
	n := f.counters()
	require.Equal(f.t, first.Processed, n.Processed)
	require.Equal(f.t, first.Captured, n.Captured)
	f.exact()
	var rows, held, conflicts int64
	f.scan(`SELECT count(*) FROM (SELECT DISTINCT event_id FROM processed_event) p`, nil, &rows)
	require.LessOrEqual(f.t, rows, int64(len(f.events)))
	f.scan(`SELECT count(*) FILTER (WHERE reason = 'outside_dedup_window'), count(*) FILTER (WHERE reason = 'conflicting_payload') FROM dead_letter`,
		nil, &held, &conflicts)
	require.Equal(f.t, old, held)
	require.Equal(f.t, n.Conflicting, conflicts)
	for _, e := range f.events {
		want := 1
		if f.outside[e.id] {
			want = 0
		}
		require.Equal(f.t, want, f.provider.postsOf(e.id), "requests for %s", e.id)
	}
}
