package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/store/storetest"
)

// replay runs billing replay on the world's database, beside the service.
func (w *world) replay(args ...string) (code int, out, errs string) {
	w.t.Helper()
	return command(w.t, []string{"DATABASE_URL=" + w.url}, append([]string{"replay"}, args...)...)
}

// post acts through the service's admin API.
func (s *service) post(path, body string, into any) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.Addr+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Operator", "alice")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	if into != nil {
		require.NoError(s.t, json.NewDecoder(resp.Body).Decode(into))
	}
	return resp.StatusCode
}

// A poison record among others is one dead letter; replayed after its cause was
// mended it is charged once, and not again when the offsets are reset.
func TestPoisonRecordIsChargedOnceItsCauseIsMended(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	const neighbours = 400
	var records []*kgo.Record
	poison := newOrder(neighbours + 1)
	poison.id = uuid.New() // version 4
	for n := range int64(neighbours) {
		if n == neighbours/2 {
			records = append(records, w.record(0, []byte(poison.json())))
		}
		records = append(records, w.record(0, []byte(newOrder(n+1).json())))
	}
	w.produce(records...)
	first := w.start(patient(map[string]string{"REQUIRE_UUID_V7": "true"}))
	w.settled()
	require.EqualValues(t, 1, first.stats().Invalid)
	require.EqualValues(t, neighbours, w.provider.Ledger().Captures)
	first.Stop()

	code, out, _ := command(t, []string{"DATABASE_URL=" + w.url, "REQUIRE_UUID_V7=true"},
		"replay", "--reason", "invalid_event_id_not_v7", "--why", "too early")
	require.Equal(t, 1, code)
	require.Contains(t, out, "still_invalid")

	code, out, _ = w.replay("--all", "--dry-run", "--json")
	require.Zero(t, code)
	var line struct {
		Result, Forward string
		Before          struct{ Provider string }
		EventID         uuid.UUID `json:"event_id"`
		DryRun          bool      `json:"dry_run"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &line))
	require.Equal(t, "recovered", line.Result)
	require.Equal(t, poison.id, line.EventID)
	require.Equal(t, "not asked", line.Before.Provider)
	require.True(t, line.DryRun)
	require.Zero(t, w.count("SELECT count(*) FROM charge_intent"), "a dry run changes nothing")

	code, out, errs := w.replay("--all", "--why", "every version is taken now", "--by", "alice")
	require.Zero(t, code, errs)
	require.Contains(t, out, "1 of 1 letters replayed")
	require.EqualValues(t, neighbours, w.provider.Ledger().Captures, "the command sends nothing itself")

	second := w.start(patient(nil))
	w.settled()
	require.EqualValues(t, neighbours+1, w.provider.Ledger().Captures)
	n := second.stats()
	require.EqualValues(t, 1, n.Recovered)
	require.EqualValues(t, len(records), n.Received-n.Duplicates.Redelivered, "a machine that stands still loses its session, and is given its records again")
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM dead_letter WHERE state = 'resolved'"))
	second.Stop()

	w.rewind()
	third := w.start(patient(nil))
	w.settled()
	require.EqualValues(t, neighbours+1, w.provider.Ledger().Posts)
	third.stats()
	code, out, _ = w.replay("--all", "--why", "once more")
	require.Zero(t, code)
	require.Contains(t, out, "no open dead letter matches")
}

// The provider refuses two orders; one is replayed once it takes it, the other is
// given up, and stays uncharged when the offsets are reset.
func TestParkedEventsAreReplayedAndDiscardedThroughTheAPI(t *testing.T) {
	t.Parallel()
	inEveryStore(t, testParkedEventsAreReplayedAndDiscardedThroughTheAPI)
}

func testParkedEventsAreReplayedAndDiscardedThroughTheAPI(t *testing.T, offsets string) {
	t.Helper()
	w := setupIn(t, offsets, 1, paymenttest.Faults{Rules: []paymenttest.Rule{{Action: "400", Orders: []int64{1, 2}}}})
	one, two, three := newOrder(1), newOrder(2), newOrder(3)
	for _, o := range []order{one, two, three} {
		w.produce(w.record(0, []byte(o.json())))
	}
	s := w.start(nil)
	w.settled()
	require.EqualValues(t, 2, s.stats().Parked)
	letter := func(o order) (id int64) {
		require.NoError(t, w.db.QueryRow(t.Context(), "SELECT id FROM dead_letter WHERE event_id = $1", o.id).Scan(&id))
		return id
	}
	require.NoError(t, w.provider.SetFaults(paymenttest.Faults{}))

	var done struct{ Result, State, Forward string }
	path := fmt.Sprintf("/api/v1/dead-letters/%d/", letter(one))
	require.Equal(t, http.StatusOK, s.post(path+"replay?dryRun=true", "", &done))
	require.Equal(t, "sent_round", done.Result)
	require.EqualValues(t, 2, s.stats().Parked)
	require.Equal(t, http.StatusOK, s.post(path+"replay", `{"reason":"the provider takes it now"}`, &done))
	require.Equal(t, "replayed", done.State)
	w.settled()
	require.Equal(t, http.StatusConflict, s.post(path+"replay", "", nil), "it is resolved")

	path = fmt.Sprintf("/api/v1/dead-letters/%d/", letter(two))
	require.Equal(t, http.StatusUnprocessableEntity, s.post(path+"discard", "", nil), "it asks why")
	require.Equal(t, http.StatusOK, s.post(path+"discard", `{"reason":"the customer left"}`, &done))
	require.Equal(t, "discarded", done.State)
	require.Equal(t, http.StatusNotFound, s.post("/api/v1/dead-letters/999999/replay", "", nil))
	n := s.stats()
	require.EqualValues(t, 2, n.Captured)
	require.EqualValues(t, 1, n.Discarded)
	require.Zero(t, n.Parked)
	var story struct {
		Charge  struct{ Status string }
		Actions []struct{ Action, By, Reason, Result string }
	}
	require.Equal(t, http.StatusOK, s.get("/api/v1/events/"+two.id.String(), &story))
	require.Equal(t, "discarded", story.Charge.Status)
	require.Len(t, story.Actions, 1)
	require.Equal(t, "alice", story.Actions[0].By)
	require.Equal(t, "the customer left", story.Actions[0].Reason)
	s.Stop()

	posts := w.provider.Ledger().Posts
	w.rewind()
	again := w.start(nil)
	w.settled()
	require.Equal(t, posts, w.provider.Ledger().Posts, "nothing is charged again, and what was discarded never")
	again.stats()
}

func TestReplayRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + storetest.URL(t)}
	for name, test := range map[string]struct {
		args      string
		complains []string
	}{
		"nothing chosen":      {"--why x", []string{"which letters?"}},
		"no reason why":       {"--all", []string{"--why is required"}},
		"all that is wrong":   {"--reason bad_luck --limit 0 --rate 9999 --event x --since now --outcome charged", []string{"bad_luck", "--limit", "--rate", "--event", "--since", "--discard", "--why"}},
		"a discard by filter": {"--all --discard --why x", []string{"--discard needs --id"}},
		"ids and a filter":    {"--id 1 --all --why x", []string{"--id names the letters"}},
		"an id that is none":  {"--id 0 --why x", []string{"above zero"}},
		"an unknown outcome":  {"--id 1 --discard --outcome perhaps --why x", []string{"--outcome: must be one of"}},
		"an argument":         {"all", []string{"unknown command"}},
	} {
		code, out, errs := command(t, environ, append([]string{"replay"}, strings.Fields(test.args)...)...)
		require.Equal(t, 2, code, name)
		require.Empty(t, out)
		for _, complaint := range test.complains {
			require.Contains(t, errs, complaint, name)
		}
	}
	code, _, errs := command(t, nil, "replay", "--all", "--why", "x")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "DATABASE_URL is required")
	code, out, errs := command(t, environ, "replay", "--id", "7", "--why", "x")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no such dead letter")
	require.Contains(t, errs, "1 of 1 dead letters stayed as they are")
	code, _, errs = command(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x?connect_timeout=1"}, "replay", "--all", "--why", "x")
	require.Equal(t, 1, code)
	require.NotEmpty(t, errs)
	code, _, errs = command(t, []string{"DATABASE_URL=" + storetest.Empty(t)}, "replay", "--all", "--why", "x")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "billing migrate up")
}
