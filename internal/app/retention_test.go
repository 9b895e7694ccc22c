package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// retained returns the report of the latest turn; the zero one before the first.
func (w *world) retained() (r domain.RetentionReport) {
	w.t.Helper()
	var text []byte
	require.NoError(w.t, w.db.QueryRow(w.t.Context(), `SELECT coalesce((SELECT report FROM retention_turn), '{}')`).Scan(&text))
	require.NoError(w.t, json.Unmarshal(text, &r))
	return r
}

// environ is that of a command beside the services.
func (w *world) environ(more ...string) []string {
	return append([]string{
		"KAFKA_BROKERS=" + strings.Join(w.brokers, ","), "KAFKA_TOPIC=" + w.topic, "KAFKA_GROUP_ID=" + w.group,
		"DATABASE_URL=" + w.url, "OFFSET_STORE=" + w.offsets,
	}, more...)
}

// retention runs the command and returns its report.
func (w *world) retention(want int, args ...string) (r admin.RetentionTurn) {
	w.t.Helper()
	code, out, errs := command(w.t, w.environ(), append([]string{"retention", "run", "--json"}, args...)...)
	require.Equal(w.t, want, code, errs)
	require.NoError(w.t, json.Unmarshal([]byte(out), &r), out)
	return r
}

func (w *world) leaves() int64 {
	w.t.Helper()
	return w.count(`SELECT count(*) FROM pg_inherits WHERE inhparent = 'processed_event'::regclass`)
}

func TestANewDatabaseGetsItsRangesAtOnceAndTheCommandWorksBesideTheService(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	for n := range int64(50) {
		w.produce(w.record(0, []byte(newOrder(n+10).json())))
	}
	before := w.start(nil)
	beside := w.start(nil)
	w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
	require.EqualValues(t, 1+8+7, w.leaves(), "the default partition, the window and today, the days ahead")
	first := w.retained()
	require.Equal(t, 15, first.Attached)
	require.Empty(t, first.Error)
	names := map[string]bool{}
	for _, c := range first.Chores {
		names[c.Name] = true
	}
	require.Len(t, names, 3)
	w.settled()
	require.Zero(t, w.count(`SELECT count(*) FROM processed_event_default`), "the first row has found its range")
	w.eventually("one of them leads", func() bool {
		if strings.Contains(beside.scrape(), "\nbilling_retention_leading 1\n") {
			before, beside = beside, before
		}
		return strings.Contains(before.scrape(), "\nbilling_retention_leading 1\n")
	})
	require.Contains(t, before.scrape(), `billing_retention_ranges{state="ahead"} 7`)
	require.Equal(t, "ok", before.component("retention").Status)

	dry := w.retention(0, "--dry-run")
	require.True(t, dry.DryRun)
	require.Equal(t, first.StartedAt, w.retained().StartedAt, "a dry run leaves no report")
	done := w.retention(0)
	require.Zero(t, done.Attached+done.Emptied+done.Dropped)
	require.Contains(t, w.retained().Instance, "billing retention run on ")
	code, out, errs := command(t, w.environ("RETENTION_MODE=delete", "DEDUP_RETENTION=72h"), "retention", "run", "--dry-run")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "dry run, nothing was changed")
	require.Contains(t, out, "RETENTION_MODE=delete, RETENTION_RANGE=day, DEDUP_RETENTION=72h0m0s")
	require.Contains(t, out, "all others")
}

// Somebody's turn by hand keeps the service's first one waiting.
func TestTheFirstBatchWaitsForItsRange(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	w.produce(w.record(0, []byte(newOrder(1).json())))
	code, _, errs := command(t, w.environ(), "migrate", "up")
	require.Zero(t, code, errs)
	hand, err := w.db.Acquire(t.Context())
	require.NoError(t, err)
	defer hand.Release()
	_, err = hand.Exec(t.Context(), `SELECT pg_advisory_lock(hashtextextended('billing.retention.turn', 'processed_event'::regclass::oid::bigint))`)
	require.NoError(t, err)
	one := w.start(nil)
	w.eventually("it leads", func() bool { return strings.Contains(one.Logs.String(), `"msg":"retention","leading":true`) })
	require.Never(t, func() bool { return w.count(`SELECT count(*) FROM processed_event`) > 0 }, 3*time.Second, 20*time.Millisecond)
	_, err = hand.Exec(t.Context(), `SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	w.settled()
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM processed_event`))
	require.Zero(t, w.count(`SELECT count(*) FROM processed_event_default`))
	require.Zero(t, w.retained().Moved)
}

func TestRetentionByHandSaysWhatKeepsWhatIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	w.produce(w.record(0, []byte(newOrder(1).json()))) // a record of now, which nobody has read
	w.retention(0)
	old := time.Now().Add(-30 * 24 * time.Hour)
	insert := func(at time.Time) uuid.UUID {
		id := uuid.New()
		_, err := w.db.Exec(t.Context(), `INSERT INTO processed_event (event_id, consumer_group, processed_at, source_topic, source_partition, source_offset, fingerprint)
			VALUES ($1, $2, $3, $4, 0, 0, sha256('x'))`, id, w.group, at, w.topic)
		require.NoError(t, err)
		return id
	}
	insert(old)
	require.EqualValues(t, 1, w.retention(0).Deleted, "the unread record is younger than what is forgotten")

	insert(old)
	shorter := w.environ("DEDUP_RETENTION=20h1s", "RETRY_HORIZON=20h")
	code, _, errs := command(t, shorter, "retention", "run")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "DEDUP_RETENTION: 20h0m1s is shorter than what is kept so far: 168h0m0s: set what the service has, or say --shorten")
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM processed_event`), "a shell without the service's setting empties nothing")
	code, out, errs := command(t, shorter, "retention", "run", "--dry-run")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "it would be refused now: what is kept so far is 168h0m0s; --shorten says that less is meant")
	code, _, errs = command(t, shorter, "retention", "run", "--shorten")
	require.Equal(t, 0, code, errs)
	require.Zero(t, w.count(`SELECT count(*) FROM processed_event`))
	insert(old)
	code, out, errs = command(t, append(w.environ(), "KAFKA_BROKERS=127.0.0.1:1"), "retention", "run")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "not known")
	require.Contains(t, out, "blocked")
	require.EqualValues(t, 1, w.count(`SELECT count(*) FROM processed_event`))
}

func TestRetentionByHandRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"no verb": {"retention"}, "an unknown flag": {"retention", "run", "--hard"}} {
		code, _, errs := command(t, required(), args...)
		require.Equal(t, 2, code, name)
		require.NotEmpty(t, errs)
	}
	code, _, errs := command(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x?connect_timeout=1"}, "retention", "run")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "KAFKA_BROKERS is required")
	require.NotContains(t, errs, "PAYMENT_URL")
	code, out, _ := command(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x?connect_timeout=1", "KAFKA_BROKERS=127.0.0.1:1"}, "retention", "run")
	require.Equal(t, 1, code)
	require.Empty(t, out)
}

func TestHealthWarnsOfARetentionThatDoesNotGetOn(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	one := w.start(nil)
	w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
	for change, reason := range map[string]string{
		`succeeded_at = now() - interval '11 minutes'`:                                                                         "no instance has done it for 11m",
		`succeeded_at = now() - interval '11 minutes', report = jsonb_set(report, '{error}', '"postgres://user@host"')`:        "its turns fail",
		`succeeded_at = now(), report = jsonb_set(report - 'error', '{blocked_since}', to_jsonb(now() - interval '25 hours'))`: "something unfinished or unread reaches into it",
	} {
		_, err := w.db.Exec(t.Context(), `UPDATE retention_turn SET `+change)
		require.NoError(t, err)
		w.eventually(reason, func() bool {
			found := one.component("retention")
			require.NotContains(t, found.Reason, "postgres://")
			return found.Status == "warn" && strings.Contains(found.Reason, reason)
		})
		_, err = w.db.Exec(t.Context(), `UPDATE retention_turn SET report = report - 'error'`)
		require.NoError(t, err)
	}
	_, err := w.db.Exec(t.Context(), `UPDATE retention_turn SET succeeded_at = now(), report = jsonb_set(report, '{retention}', '3600000000000')`)
	require.NoError(t, err)
	w.eventually("another one keeps for less", func() bool {
		return strings.Contains(one.component("retention").Reason, "keeps for 1h0m0s what this instance is to keep for 168h0m0s")
	})
	_, err = w.db.Exec(t.Context(), `UPDATE retention_turn SET report = jsonb_set(report, '{retention}', to_jsonb(168 * 3600000000000))`)
	require.NoError(t, err)
	_, err = w.db.Exec(t.Context(), `UPDATE retention_turn SET succeeded_at = now() - interval '9 minutes', report = jsonb_set(report, '{blocked_since}', to_jsonb(now() - interval '23 hours'))`)
	require.NoError(t, err)
	w.eventually("it is well again", func() bool { return one.component("retention").Status == "ok" })
	require.Equal(t, http.StatusOK, one.get("/readyz", nil), "and never depends on it")
}

// Events whose ids are far ahead lie in the default partition, until their range is
// attached: a batch that claims them meanwhile is run again by the flow itself.
func TestABatchThatMeetsAMoveIsRunAgainAndExact(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		w := setupIn(t, offsets, 1, paymenttest.Faults{IgnoreKeys: true})
		one := w.start(nil)
		w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
		ahead := time.Now().UTC().Truncate(24 * time.Hour).Add(50 * 24 * time.Hour)
		instant := domain.FirstID(ahead.Add(time.Hour))
		orders := make([]order, 20)
		for i := range orders {
			orders[i] = newOrder(int64(i + 1))
			copy(orders[i].id[:6], instant[:6])
		}
		send := func(orders []order) {
			for _, o := range orders {
				w.produce(w.record(0, []byte(o.json())))
			}
		}
		send(orders[:10])
		w.settled()
		require.EqualValues(t, 10, w.count(`SELECT count(*) FROM processed_event_default`))

		holder, err := w.db.Begin(t.Context()) // keeps the move waiting, and so the batch behind it
		require.NoError(t, err)
		_, err = holder.Exec(t.Context(), `LOCK TABLE processed_event_default IN ROW EXCLUSIVE MODE`)
		require.NoError(t, err)
		ranges, err := store.NewRanges(storetest.Config(w.url))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ranges.Close()) })
		w.eventually("the service's turn ends", func() bool { begun, err := ranges.Begin(t.Context()); require.NoError(t, err); return begun })
		moved := make(chan error, 1)
		go func() {
			_, err := ranges.Attach(t.Context(), domain.Span{From: ahead, To: ahead.Add(24 * time.Hour)}, 1000, patience)
			moved <- err
		}()
		waiting := func(n int64) func() bool {
			return func() bool {
				return n <= w.count(`SELECT count(*) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
					WHERE NOT l.granted AND c.relname = 'processed_event_default' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
			}
		}
		w.eventually("the move waits", waiting(1))
		send(orders[5:])
		w.eventually("a batch waits behind it", waiting(2))
		require.NoError(t, holder.Commit(t.Context()))
		require.NoError(t, <-moved)
		w.settled()
		require.Contains(t, one.Logs.String(), "23514", "the batch has met it")

		n := one.stats()
		require.EqualValues(t, 25, n.Received)
		require.EqualValues(t, 20, n.Processed)
		require.EqualValues(t, 5, n.Duplicates.Republished)
		require.EqualValues(t, 20, n.Captured)
		require.EqualValues(t, 20, w.provider.Ledger().Posts)
		var where []string
		require.NoError(t, w.db.QueryRow(t.Context(), `SELECT array_agg(of || ': ' || n ORDER BY of)
			FROM (SELECT tableoid::regclass::text AS of, count(*) AS n FROM processed_event GROUP BY 1) AS t`).Scan(&where))
		leaf := fmt.Sprintf("processed_event_%s_%s", ahead.Format("20060102"), ahead.Add(24*time.Hour).Format("20060102"))
		require.Equal(t, []string{leaf + ": 20"}, where, "ranges: %+v\n%s", w.retained().Ranges, one.Logs.String())
	})
}

// A service that comes back with a mistyped, shorter DEDUP_RETENTION empties nothing that was kept so
// far: health says so, and what to do, until somebody does.
func TestAServiceWithAMistypedRetentionForgetsNothingUntilThatIsConfirmed(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	before := w.start(nil)
	w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
	before.Stop()
	id, at := domain.FirstID(time.Now().Add(-70*time.Hour)), time.Now().Add(-70*time.Hour)
	_, err := w.db.Exec(t.Context(), `INSERT INTO processed_event (event_id, consumer_group, processed_at, source_topic, source_partition, source_offset, fingerprint)
		VALUES ($1, $2, $3, $4, 0, 0, sha256('x'))`, id, w.group, at, w.topic)
	require.NoError(t, err)
	known := func() int64 { return w.count(`SELECT count(*) FROM processed_event`) }

	mistyped := w.start(map[string]string{"DEDUP_RETENTION": "21h"})
	w.eventually("its first turn", func() bool { return w.retained().Wanted != 0 })
	require.EqualValues(t, 1, known())
	found := mistyped.component("retention")
	require.Equal(t, "warn", found.Status)
	require.Equal(t, "whoever did it last is to keep for 21h0m0s only, and keeps for 168h0m0s as before: set its DEDUP_RETENTION back, "+
		"or confirm it by billing retention run --shorten", found.Reason)
	require.Contains(t, mistyped.Logs.String(), "DEDUP_RETENTION is shorter than what was kept so far")
	require.Equal(t, http.StatusOK, mistyped.get("/readyz", nil))
	var page object
	require.Equal(t, http.StatusOK, mistyped.get("/api/v1/dedup/stats", &page))
	require.Equal(t, "168h", inside(t, page, "processed_event", "last_turn", "kept_for"))
	require.Equal(t, "21h", inside(t, page, "processed_event", "last_turn", "wanted"))

	code, _, errs := command(t, w.environ("DEDUP_RETENTION=21h"), "retention", "run", "--shorten")
	require.Zero(t, code, errs)
	require.Zero(t, known())
	w.eventually("it is well", func() bool { return mistyped.component("retention").Status == "ok" })
}

func TestASettingOfRetentionReachesIt(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	one := w.start(map[string]string{"RETENTION_RANGE": "month", "DEDUP_RETENTION": "72h"})
	w.eventually("the first turn", func() bool { return !w.retained().FinishedAt.IsZero() })
	r := w.retained()
	require.Equal(t, "month", r.Width)
	require.Equal(t, 72*time.Hour, r.Retention)
	require.GreaterOrEqual(t, len(r.Ranges), 4)
	var c struct {
		Settings []struct{ Name, Value string }
	}
	require.Equal(t, http.StatusOK, one.get("/api/v1/config", &c))
	values := map[string]string{}
	for _, s := range c.Settings {
		values[s.Name] = s.Value
	}
	require.Contains(t, slices.Collect(maps.Keys(values)), "RETENTION_RANGE")
	require.Equal(t, "month", values["RETENTION_RANGE"])
}
