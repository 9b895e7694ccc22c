package retention_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/retention"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	group    = "billing-test"
	day      = 24 * time.Hour
	keepFor  = 3 * day
	patience = 20 * time.Second
)

// noon is when these tests begin.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// clock is set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// timed is a database whose clock is set by hand.
type timed struct {
	retention.Table
	clock *clock
}

func (t timed) Now(context.Context) (time.Time, error) { return t.clock.Now(), nil }

// reader is what the brokers say.
type reader struct {
	mu    sync.Mutex
	from  time.Time // the first unread record's; zero: everything is read
	err   error
	asked int
}

func (r *reader) UnreadBefore(_ context.Context, at time.Time) ([]domain.Unread, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.err != nil || r.from.IsZero() || !r.from.Before(at) {
		return nil, r.err
	}
	return []domain.Unread{{Group: group, Topic: "orders.confirmed", Partition: 3, Records: 17}, {Group: group, Topic: "orders.confirmed", Partition: 4, Records: 1}}, nil
}

func (r *reader) say(from time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.err = from, err
}

// chore is another one who forgets.
type chore struct {
	name string
	run  func(context.Context) (int64, error)
}

func (c chore) Name() string                                        { return c.name }
func (c chore) Run(ctx context.Context, _ time.Time) (int64, error) { return c.run(ctx) }

// world is a database with its retention.
type world struct {
	t      *testing.T
	url    string
	store  *store.Store
	conn   *pgx.Conn
	clock  *clock
	reader *reader
	ranges *store.Ranges
	keeper *retention.Keeper
}

func setup(t *testing.T, mode domain.RetentionMode, change ...func(*retention.Config, *retention.Parts)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: noon}, reader: &reader{}}
	w.store, w.url = storetest.Open(t)
	w.conn = storetest.Conn(t, w.url)
	w.ranges, w.keeper = w.another(mode, change...)
	return w
}

// another returns another instance on the same database.
func (w *world) another(mode domain.RetentionMode, change ...func(*retention.Config, *retention.Parts)) (*store.Ranges, *retention.Keeper) {
	w.t.Helper()
	ranges, err := store.NewRanges(storetest.Config(w.url))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, ranges.Close()) })
	c := retention.DefaultConfig()
	c.Mode, c.Retention, c.Instance = mode, keepFor, "billing-test"
	c.Poll, c.Pause = 5*time.Millisecond, time.Millisecond
	p := retention.Parts{Place: ranges, Table: timed{ranges, w.clock}, Reader: w.reader, Clock: w.clock, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c, &p)
	}
	keeper, err := retention.New(c, p)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, keeper.Close()) })
	return ranges, keeper
}

// turn makes a turn that must do its work.
func (w *world) turn() domain.RetentionReport {
	w.t.Helper()
	report, err := w.keeper.Once(w.t.Context(), retention.ByHand{}, patience)
	require.NoError(w.t, err)
	require.Empty(w.t, report.Error)
	return report
}

// idAt returns a UUID version 7 of an instant.
func idAt(at time.Time) uuid.UUID {
	id, random := domain.FirstID(at), uuid.New()
	copy(id[6:], random[6:])
	id[6] = 0x70 | byte(rand.IntN(16))
	return id
}

// processed puts events in that were written at an instant, with ids of then.
func (w *world) processed(at time.Time, n int) (ids []uuid.UUID) {
	w.t.Helper()
	for range n {
		ids = append(ids, idAt(at))
	}
	w.rows(at, ids...)
	return ids
}

// rows puts events in that were written at an instant.
func (w *world) rows(at time.Time, ids ...uuid.UUID) {
	w.t.Helper()
	for _, id := range ids {
		digest := sha256.Sum256(id[:])
		w.execute(`INSERT INTO processed_event (event_id, consumer_group, processed_at, source_topic, source_partition, source_offset, fingerprint)
			VALUES ($1, $2, $3, 'orders.confirmed', 3, $4, $5)`, id, group, at, rand.Int64(), digest[:])
	}
}

// intent puts the intent of an event in, in a state.
func (w *world) intent(id uuid.UUID, state domain.IntentState) {
	w.t.Helper()
	dead := state == domain.Parked || state == domain.UnknownOutcome
	lease := state == domain.Calling
	answer := any(nil)
	if state == domain.Answered {
		answer = "{}"
	}
	w.execute(`
INSERT INTO charge_intent (event_id, order_id, request_hash, fingerprint, state, claimed, maybe_sent, token, owner, due_at, created_at, attempts,
	last_error, consumer_group, traceparent, tracestate, record, record_timestamp, source_topic, source_partition, source_offset, lease_until, first_attempt_at, answer)
VALUES ($1, $2, sha256('x'), sha256('x'), $3, true, $4, gen_random_uuid(), '', $5, $6, 0,
	'', $7, '', '', '', $6, 'orders.confirmed', 3, 0, CASE WHEN $8 THEN $5::timestamptz END, CASE WHEN $4 THEN $5::timestamptz END, $9::jsonb)`,
		id, 1+rand.Int64N(1<<60), string(state), dead, noon, noon.Add(-30*day), group, lease, answer)
}

func (w *world) execute(sql string, args ...any) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	_, err := w.conn.Exec(ctx, sql, args...)
	require.NoError(w.t, err)
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.conn.QueryRow(ctx, sql, args...).Scan(&n))
	return n
}

// knows counts those of the events that are remembered.
func (w *world) knows(ids ...uuid.UUID) int {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM processed_event WHERE event_id = ANY($1)`, ids)
}

// states counts the ranges by state.
func states(r *domain.RetentionReport) map[domain.RangeState]int {
	n := map[domain.RangeState]int{}
	for i := range r.Ranges {
		n[r.Ranges[i].State]++
	}
	return n
}

// rangeOf returns the range of the report that holds an instant.
func rangeOf(t *testing.T, r *domain.RetentionReport, at time.Time) domain.RetentionRange {
	t.Helper()
	for i := range r.Ranges {
		if r.Ranges[i].Contains(at) {
			return r.Ranges[i]
		}
	}
	require.Fail(t, "no range", "of %s in %+v", at, r.Ranges)
	return domain.RetentionRange{}
}

// inBothModes runs a test in each.
func inBothModes(t *testing.T, test func(t *testing.T, mode domain.RetentionMode)) {
	t.Helper()
	for _, mode := range []domain.RetentionMode{domain.RetainByPartition, domain.RetainByDelete} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			test(t, mode)
		})
	}
}

var errAway = errors.New("the brokers are away")
