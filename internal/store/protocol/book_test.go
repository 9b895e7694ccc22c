package protocol_test

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

// exec runs a statement by hand.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.conn.Exec(context.WithoutCancel(w.t.Context()), sql, args...)
	require.NoError(w.t, err)
}

// scan reads one row.
func (w *world) scan(sql string, args []any, into ...any) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.NoError(w.t, w.conn.QueryRow(context.WithoutCancel(w.t.Context()), sql, args...).Scan(into...))
}

func collect[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, err := w.conn.Query(context.WithoutCancel(w.t.Context()), sql, args...)
	require.NoError(w.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	require.NoError(w.t, err)
	return out
}

// intentRow is what charge_intent says about an event.
type intentRow struct {
	State      string
	Claimed    bool
	MaybeSent  bool
	Token      uuid.UUID
	Attempts   int
	DueAt      time.Time
	LeaseUntil *time.Time
}

// intents returns the event's intent, or none.
func (w *world) intents(e event) []intentRow {
	w.t.Helper()
	return collect[intentRow](w, `SELECT state, claimed, maybe_sent, token, attempts, due_at, lease_until
		FROM charge_intent WHERE event_id = $1`, e.id)
}

// intent returns the event's intent, which exists.
func (w *world) intent(e event) intentRow {
	w.t.Helper()
	rows := w.intents(e)
	require.Len(w.t, rows, 1, "an open intent of event %s", e.id)
	return rows[0]
}

// status returns how the event's charge ended, "" while it has not.
func (w *world) status(e event) string {
	w.t.Helper()
	var status string
	w.scan("SELECT coalesce((SELECT status FROM charge WHERE event_id = $1), '')", []any{e.id}, &status)
	return status
}

// final requires that the event ended with the status, and left no intent.
func (w *world) final(e event, status string) {
	w.t.Helper()
	require.Equal(w.t, status, w.status(e))
	require.Empty(w.t, w.intents(e))
}

// letterRow is a dead letter.
type letterRow struct {
	Reason    string
	State     string
	EventID   *uuid.UUID
	Partition int32
	Offset    int64
	Value     []byte
}

func (w *world) letters() []letterRow {
	w.t.Helper()
	return collect[letterRow](w, `SELECT reason, state, event_id, partition, "offset", value
		FROM dead_letter ORDER BY topic, partition, "offset"`)
}

// letter requires exactly one dead letter, of the record and the reason.
func (w *world) letter(r domain.Record, reason domain.Reason) letterRow {
	w.t.Helper()
	letters := w.letters()
	require.Len(w.t, letters, 1)
	require.Equal(w.t, string(reason), letters[0].Reason)
	require.Equal(w.t, "open", letters[0].State)
	require.Equal(w.t, r.Partition, letters[0].Partition)
	require.Equal(w.t, r.Offset, letters[0].Offset)
	require.Equal(w.t, r.Value, letters[0].Value)
	return letters[0]
}

// counters returns the sum of all statistics that tell what became of records and
// events; delays and leads returns the others.
func (w *world) counters() (n domain.Counters) {
	w.t.Helper()
	w.scan(`SELECT coalesce(sum(received), 0), coalesce(sum(processed), 0), coalesce(sum(recovered), 0),
		coalesce(sum(redelivered), 0), coalesce(sum(republished), 0), coalesce(sum(conflicting), 0), coalesce(sum(invalid), 0),
		coalesce(sum(captured), 0), coalesce(sum(declined), 0), coalesce(sum(duplicate_order), 0), coalesce(sum(discarded), 0),
		coalesce(sum(non_v7), 0) FROM dedup_stat`, nil,
		&n.Received, &n.Processed, &n.Recovered, &n.Redelivered, &n.Republished, &n.Conflicting, &n.Invalid,
		&n.Captured, &n.Declined, &n.DuplicateOrder, &n.Discarded, &n.NonV7)
	return n
}

// delays returns how many duplicates there are in each bucket that has some, and
// requires that together they are all.
func (w *world) delays() map[domain.DelayBucket]int64 {
	w.t.Helper()
	found, sum := map[domain.DelayBucket]int64{}, int64(0)
	for _, b := range domain.DelayBuckets() {
		var n int64
		w.scan("SELECT coalesce(sum(delay_"+b.String()+"), 0) FROM dedup_stat", nil, &n)
		if sum += n; n != 0 {
			found[b] = n
		}
	}
	require.Equal(w.t, w.counters().Duplicates(), sum, "%v", found)
	return found
}

// leads returns how many processed ids were ahead of the clock, and by how much.
func (w *world) leads() (n int64, most time.Duration) {
	w.t.Helper()
	var ms int64
	w.scan("SELECT coalesce(sum(id_ahead), 0), coalesce(max(id_ahead_max_ms), 0) FROM dedup_stat", nil, &n, &ms)
	return n, time.Duration(ms) * time.Millisecond
}

// logged requires that the log of duplicates holds exactly what was counted: no
// transaction of the test had more of them than are logged.
func (w *world) logged() {
	w.t.Helper()
	n := w.counters()
	want := map[string]int64{"redelivered": n.Redelivered, "republished": n.Republished, "conflicting": n.Conflicting}
	type row struct {
		Kind  string
		Count int64
	}
	found := map[string]int64{"redelivered": 0, "republished": 0, "conflicting": 0}
	for _, r := range collect[row](w, "SELECT kind, count(*) FROM duplicate_log GROUP BY kind") {
		found[r.Kind] = r.Count
	}
	require.Equal(w.t, want, found)
}

// balanced requires what is exact, and a log that holds every duplicate: no
// transaction of the test had more than are logged.
func (w *world) balanced() {
	w.t.Helper()
	w.exact()
	w.logged()
}

// exact requires what holds after every commit: the identities of the statistics,
// books that agree with each other, and a provider that saw no more than the books
// admit.
func (w *world) exact() {
	w.t.Helper()
	n := w.counters()
	require.Equal(w.t, n.Received, n.Processed+n.Duplicates()+n.Invalid, "received: %+v", n)
	w.delays()
	var open, parked, finals int64
	w.scan(`SELECT count(*) FILTER (WHERE state NOT IN ('parked', 'held')), count(*) FILTER (WHERE state IN ('parked', 'held'))
		FROM charge_intent WHERE claimed`, nil, &open, &parked)
	require.Equal(w.t, n.Processed+n.Recovered, n.Captured+n.Declined+n.DuplicateOrder+n.Discarded+open+parked,
		"processed: %+v, unfinished %d, parked %d", n, open, parked)
	var askew int
	w.scan(`SELECT count(*) FROM (SELECT consumer_group FROM (
			SELECT consumer_group, sum(processed + recovered - captured - declined - duplicate_order - discarded) AS n FROM dedup_stat GROUP BY 1
			UNION ALL SELECT consumer_group, -count(*) FROM charge_intent WHERE claimed GROUP BY 1
		) d GROUP BY consumer_group HAVING sum(n) <> 0) askew`, nil, &askew)
	require.Zero(w.t, askew, "each group's books balance by themselves")
	w.scan("SELECT count(*) FROM charge", nil, &finals)
	require.Equal(w.t, finals, n.Captured+n.Declined+n.DuplicateOrder+n.Discarded, "final charges: %+v", n)

	var orphans int
	w.scan(`SELECT count(*) FROM processed_event p
		WHERE NOT EXISTS (SELECT FROM charge c WHERE c.event_id = p.event_id)
		AND NOT EXISTS (SELECT FROM charge_intent i WHERE i.event_id = p.event_id AND i.claimed)`, nil, &orphans)
	require.Zero(w.t, orphans, "claimed events without a charge or an intent")
	w.agreesWithProvider()
	w.told()
}

// agreesWithProvider compares charges and attempts with the provider's ledger.
func (w *world) agreesWithProvider() {
	w.t.Helper()
	type row struct {
		EventID  uuid.UUID
		Status   string
		Attempts int
	}
	for _, r := range collect[row](w, `SELECT event_id, status, attempts FROM charge
		UNION ALL SELECT event_id, state, attempts FROM charge_intent`) {
		require.GreaterOrEqual(w.t, r.Attempts, w.provider.postsOf(r.EventID), "attempts of %s, %s", r.EventID, r.Status)
		if r.Status == "captured" {
			require.Positive(w.t, w.provider.capturesOf(r.EventID), "%s is captured in the book only", r.EventID)
		}
	}
	w.provider.mu.Lock()
	defer w.provider.mu.Unlock()
	for order, n := range w.provider.orders {
		require.Equal(w.t, 1, n, "captures of order %d", order)
	}
}

// chargedElsewhere writes down by hand that the event's order was captured by
// another event, which did not pass through here.
func (w *world) chargedElsewhere(e event) {
	w.t.Helper()
	w.exec(`INSERT INTO charge (event_id, order_id, customer_id, amount, currency, status, attempts, claims_order,
			occurred_at, settled_at, fingerprint, source_topic, source_partition, source_offset)
		SELECT gen_random_uuid(), order_id, 7, 10.50, 'EUR', 'captured', 0, true, now(), now(), fingerprint, 'elsewhere', 0, 0
		FROM charge_intent WHERE event_id = $1`, e.id)
}

// terminateMain cuts the database sessions of all main transactions.
func (w *world) terminateMain() {
	w.t.Helper()
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'billing' AND state <> 'idle'`)
}

// blocked waits until a session of the application waits for a lock.
func (w *world) blocked(application string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		var n int
		w.scan(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = $1 AND wait_event_type = 'Lock'`, []any{application}, &n)
		return n > 0
	}, patience, 5*time.Millisecond)
}
