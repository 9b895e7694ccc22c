package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/audit"
	"example.com/billing/internal/domain"
	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

func TestAuditFindsNothingWrongWithAnHonestHistoryAndEveryTamperingByItsName(t *testing.T) {
	t.Parallel()
	h := history(t)
	kinds := map[audit.Kind]int64{
		audit.Captured: 20, audit.Declined: 1, audit.Duplicate: 8, audit.DuplicateOrder: 1, audit.Unfinished: 1,
		audit.Parked: 4, audit.Discarded: 1, audit.NotYetReached: 2, audit.Unexplained: 0,
	}
	honest := h.audit(t, h.url, lookup{url: h.payURL})
	require.Empty(t, honest.Findings)
	require.Empty(t, honest.Warnings)
	require.True(t, honest.Clean())
	require.Equal(t, kinds, honest.Kinds)
	require.EqualValues(t, 38, honest.Records)
	require.EqualValues(t, 26, honest.Provider.Lookups, "20 captured, declined, duplicate_order, discarded, and three intents")
	require.EqualValues(t, 20, honest.Provider.Captured)

	for name, c := range tamperings(h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.Clone(t, h.url)
			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			for _, sql := range c.sql {
				if strings.HasPrefix(sql, "DROP") {
					_, err := conn.Exec(t.Context(), sql)
					require.NoError(t, err, sql)
					continue
				}
				tag, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol, c.event.id)
				require.NoError(t, err, sql)
				require.NotZero(t, tag.RowsAffected(), "tampers with nothing: %s", sql)
			}
			require.NoError(t, conn.Close(t.Context()))
			r := h.audit(t, url, lookup{url: h.payURL, change: c.provider})
			require.Equal(t, c.want, r.Problems, "%+v", r.Findings)
			require.False(t, r.Clean())
			for _, f := range r.Findings {
				require.NotEmpty(t, f.Problem.Advice())
				if c.event.id != uuid.Nil && f.Problem != audit.WrongCounters && !c.others {
					require.Equal(t, c.event.id, f.EventID, "%+v", f)
					require.Equal(t, h.topic, f.At.Topic)
				}
			}
		})
	}
}

func TestAuditOfAPartOfTheTopicJudgesThatPartOnly(t *testing.T) {
	t.Parallel()
	h := history(t)
	conn, err := pgx.Connect(t.Context(), h.url)
	require.NoError(t, err)
	for _, sql := range []string{
		`DELETE FROM charge WHERE event_id = $1`,
		`UPDATE dedup_stat SET captured = captured + 1 WHERE minute = (SELECT min(minute) FROM dedup_stat) AND partition = 0 AND $1::uuid IS NOT NULL`,
	} {
		_, err = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol, h.events["captured 7"].id)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close(t.Context()))

	inside := h.audit(t, h.url, nil, func(o *audit.Options) { o.From, o.To = map[int32]int64{1: 3}, map[int32]int64{1: 4} })
	require.EqualValues(t, 1, inside.Records)
	require.Equal(t, map[audit.Problem]int64{audit.Missing: 1}, inside.Problems, "captured 7 is the fourth of partition 1")
	require.EqualValues(t, 3, inside.Findings[0].At.Offset)
	require.Len(t, inside.Warnings, 1, "counters are those of the whole history")
	require.True(t, inside.Partial)
	require.False(t, inside.Provider.Asked)

	outside := h.audit(t, h.url, nil, func(o *audit.Options) { o.From = map[int32]int64{1: 4} })
	require.True(t, outside.Clean(), "%+v", outside.Findings)
	require.Len(t, outside.Partitions, 1)
	later := h.audit(t, h.url, nil, func(o *audit.Options) { o.Since = time.Now().Add(time.Hour) })
	require.True(t, later.Clean())
	require.Zero(t, later.Records)
	before := h.audit(t, h.url, nil, func(o *audit.Options) { o.Until = time.Now().Add(time.Hour) })
	require.EqualValues(t, 38, before.Records)
	require.Equal(t, map[audit.Problem]int64{audit.Missing: 1}, before.Problems)
}

func TestAuditExplainsWhatRetentionHasEmptied(t *testing.T) {
	t.Parallel()
	h := history(t)
	conn, err := pgx.Connect(t.Context(), h.url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `DELETE FROM processed_event`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))

	old := h.audit(t, h.url, nil, func(o *audit.Options) { o.Retention = time.Hour }) // the margin for clocks is as long
	require.True(t, old.Clean(), "%+v", old.Findings)
	require.EqualValues(t, 20, old.Kinds[audit.Captured])
	require.EqualValues(t, 8, old.Kinds[audit.Duplicate], "the charge tells the first from the others")
}

// late is a store in which a charge is seen by the second look only: first by that
// at its record, then by that at its row, as if it became final in between.
type late struct {
	*store.Store
	id    uuid.UUID
	looks int
}

func (l *late) Evidence(ctx context.Context, group string, ids []uuid.UUID, at []domain.Coordinates) (domain.Evidence, error) {
	found, err := l.Store.Evidence(ctx, group, ids, at)
	if slices.Contains(ids, l.id) {
		if l.looks++; l.looks == 1 {
			delete(found.Charges, l.id)
		}
	}
	return found, err
}

func TestAuditSaysNothingThatASecondLookDoesNotConfirm(t *testing.T) {
	t.Parallel()
	h := history(t)
	some := h.events["captured 7"]
	s, err := store.New(storetest.Config(h.url))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	books := &late{Store: s, id: some.id}
	asked := map[uuid.UUID]int{}
	var mu sync.Mutex
	slow := lookup{url: h.payURL, change: func(id uuid.UUID, found domain.Found) (domain.Found, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked[id]++; id == some.id && asked[id] == 1 {
			return domain.Found{}, io.ErrUnexpectedEOF
		}
		return found, nil
	}}
	r := h.auditOf(t, books, slow)
	require.Empty(t, r.Findings)
	require.Equal(t, 3, books.looks, "at its record twice, and once when the provider was asked again")
	require.Equal(t, 2, asked[some.id])
	require.EqualValues(t, 20, r.Kinds[audit.Captured])
}

func TestAuditBesideARunningServiceFindsNothingWrong(t *testing.T) {
	t.Parallel()
	faults, err := paymenttest.ParseFaults("503-after=0.02,latency=uniform:5ms:60ms")
	require.NoError(t, err)
	h := &past{world: setup(t, 4, faults)}
	h.start(map[string]string{"CHARGE_BUDGET": "10s"})
	h.start(map[string]string{"CHARGE_BUDGET": "10s"})
	const most = 3000
	for n := int64(0); n < most; n += 300 {
		var records []*kgo.Record
		for i := range int64(300) {
			o := newOrder(n + i + 1)
			records = append(records, h.record(int32(i%4), []byte(o.json())), h.record(int32((i+i%2)%4), []byte(o.json())))
		}
		h.produce(records...)
		r := h.audit(t, h.url, nil, func(o *audit.Options) { o.Recheck = time.Second })
		require.Empty(t, r.Findings)
	}
	h.settled()
	r := h.audit(t, h.url, lookup{url: h.payURL})
	require.Empty(t, r.Findings)
	require.EqualValues(t, most, r.Kinds[audit.Captured])
	require.EqualValues(t, most, r.Kinds[audit.Duplicate])
}

func TestAuditIsACommandForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	h := history(t)
	code, out, errs := command(t, h.environ(), "audit", "--list")
	require.Zero(t, code, errs+out)
	require.Contains(t, out, "clean: 38 records, each with one terminal record")
	require.Contains(t, out, "provider: not asked")
	require.Contains(t, out, fmt.Sprintf("%s/0@0\tcaptured\tevent %s\torder 1\t10.50 EUR", h.topic, h.events["captured 0"].id))

	conn, err := pgx.Connect(t.Context(), h.url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `DELETE FROM charge WHERE status = 'captured'`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	code, out, errs = command(t, h.environ(), "audit", "--json", "--findings", "3")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "missing")
	var report struct {
		Version  int              `json:"version"`
		Clean    bool             `json:"clean"`
		Records  int64            `json:"records"`
		Kinds    map[string]int64 `json:"kinds"`
		Total    int64            `json:"findings_total"`
		Problems map[string]int64 `json:"problems"`
		Findings []struct {
			Problem string `json:"problem"`
			Source  struct{ Offset int64 }
			EventID uuid.UUID `json:"event_id"`
			OrderID int64     `json:"order_id"`
			What    string    `json:"what"`
			Advice  string    `json:"advice"`
		} `json:"findings"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, 2, report.Version)
	require.False(t, report.Clean)
	require.EqualValues(t, 38, report.Records)
	require.Len(t, report.Findings, 3)
	require.EqualValues(t, 28, report.Problems["missing"], "20 charges and 8 repetitions: %v", report.Problems)
	require.Equal(t, report.Total, report.Problems["missing"]+report.Problems["uncovered_order"])
	require.Equal(t, h.events["captured 0"].id, report.Findings[0].EventID)
	require.EqualValues(t, 1, report.Findings[0].OrderID)
	require.NotEmpty(t, report.Findings[0].Advice)
	code, out, _ = command(t, h.environ(), "audit")
	require.Equal(t, 1, code)
	require.Contains(t, out, "NOT CLEAN")
	require.Contains(t, out, "✗ missing at "+h.topic+"/0@0 event "+h.events["captured 0"].id.String()+" order 1: ")

	for _, args := range [][]string{
		{"--since", "yesterday"},
		{"--from-offset", "3"},
		{"--from-offset", "0:-1"},
		{"--to-offset", "0:5", "--from-offset", "0:5"},
		{"--findings", "0"},
		{"--lookup-rate", "0"},
		{"--since", "2026-11-29T12:00:00Z", "--until", "2026-11-29T11:00:00Z"},
		{"extra"},
		{"--from-offset", "7:0"}, // there is no such partition
	} {
		code, _, errs = command(t, h.environ(), append([]string{"audit"}, args...)...)
		require.Equal(t, 2, code, "%v: %s", args, errs)
	}
	code, _, errs = command(t, append(h.environ(), "KAFKA_TOPIC=elsewhere"), "audit")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no such topic")
}

func TestAuditTakesThePositionWhereItIsKept(t *testing.T) {
	t.Parallel()
	h := &past{world: setup(t, 1, paymenttest.Faults{}), events: map[string]order{}}
	h.offsets = "postgres"
	running := h.start(nil)
	o := newOrder(1)
	h.produce(h.record(0, []byte(o.json())))
	h.settled()
	running.Stop()
	_, err := h.db.Exec(t.Context(), `DELETE FROM charge`)
	require.NoError(t, err)
	_, err = h.db.Exec(t.Context(), `DELETE FROM processed_event`)
	require.NoError(t, err)
	h.eventually("the group is gone", func() bool {
		_, err := h.admin.DeleteGroup(t.Context(), h.group)
		return err == nil
	})

	code, out, errs := command(t, append(h.environ(), "OFFSET_STORE=postgres"), "audit")
	require.Equal(t, 1, code, errs)
	require.Contains(t, out, "committed 1\n")
	require.Contains(t, out, "✗ missing at "+h.topic+"/0@0 event "+o.id.String())
	code, out, _ = command(t, h.environ(), "audit")
	require.Zero(t, code, "without a position nothing must be explained")
	require.Contains(t, out, "committed nothing\n")
	require.Contains(t, out, "warning: partition 0: the group "+h.group+" has committed no offset")
}

func TestAuditAsksTheProviderAsOftenAsItMay(t *testing.T) {
	t.Parallel()
	h := history(t)
	environ := append(h.environ(), "PAYMENT_LOOKUP=true")
	var report struct {
		Seconds  float64 `json:"seconds"`
		Provider struct {
			Asked    bool  `json:"asked"`
			Lookups  int64 `json:"lookups"`
			Captured int64 `json:"captured"`
		} `json:"provider"`
		Problems map[string]int64 `json:"problems"`
		Findings []struct {
			EventID uuid.UUID `json:"event_id"`
		} `json:"findings"`
	}
	code, out, errs := command(t, environ, "audit", "--json", "--lookup-rate", "20")
	require.Zero(t, code, errs+out)
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.True(t, report.Provider.Asked)
	require.EqualValues(t, 26, report.Provider.Lookups)
	require.EqualValues(t, 20, report.Provider.Captured)
	require.Greater(t, report.Seconds, 1.0, "26 questions, at 20 a second")
	code, out, _ = command(t, environ, "audit", "--no-provider")
	require.Zero(t, code)
	require.Contains(t, out, "provider: not asked")

	// Somebody else charges under the key of an event that was refused.
	require.NoError(t, h.provider.SetFaults(paymenttest.Faults{}))
	rejected := h.events["rejected"]
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.payURL+"/v1/charges",
		strings.NewReader(fmt.Sprintf(`{"orderId":%d,"amount":10.50,"currency":"EUR"}`, rejected.order)))
	require.NoError(t, err)
	post.Header.Set("Idempotency-Key", rejected.id.String())
	response, err := http.DefaultClient.Do(post)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Less(t, response.StatusCode, 300)
	code, out, _ = command(t, environ, "audit", "--json")
	require.Equal(t, 1, code)
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Equal(t, map[string]int64{"unrecorded_capture": 1}, report.Problems)
	require.Equal(t, rejected.id, report.Findings[0].EventID)
}
