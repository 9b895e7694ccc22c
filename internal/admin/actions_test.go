package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/admin"
	"example.com/billing/internal/domain"
)

// desk is an operator that does nothing and remembers what it was asked for.
type desk struct {
	mu     sync.Mutex
	asked  []domain.Instruction
	ran    []string
	filter domain.LetterFilter
	bulk   []domain.Bulk
	ends   error // of a bulk, after its letters

	fault   error
	entered chan struct{} // gets a value for each action that begins, when it is set
	release chan struct{} // and the action waits until this is closed
}

func (d *desk) act(ctx context.Context, how string, i domain.Instruction) (domain.Done, error) {
	if d.entered != nil {
		d.entered <- struct{}{}
		select {
		case <-d.release:
		case <-ctx.Done():
			return domain.Done{}, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i.Kind == domain.ActionDiscard && i.Why == "" {
		return domain.Done{}, &domain.InputError{Field: "reason", Detail: "is required"}
	}
	d.asked, d.ran = append(d.asked, i), append(d.ran, how)
	return aDone(), d.fault
}

// aDone is a letter that was sent round.
func aDone() domain.Done {
	letter := theLetter(12, func(l *domain.Letter) {
		l.EventID, l.Reason, l.State = theID(1), domain.ReasonRetriesExhausted, domain.LetterReplayed
	})
	return domain.Done{
		Letter: letter, Result: domain.ResultSentRound, Forward: "sent again under the same key",
		Intent: &domain.Intent{State: domain.Parked, MaybeSent: true},
	}
}

func (d *desk) Replay(ctx context.Context, id int64, by, why string) (domain.Done, error) {
	return d.act(ctx, "replay", domain.Instruction{LetterID: id, By: by, Why: why, Kind: domain.ActionReplay})
}

func (d *desk) Discard(ctx context.Context, i domain.Instruction) (domain.Done, error) {
	return d.act(ctx, "discard", i)
}

func (d *desk) Plan(ctx context.Context, i domain.Instruction) (domain.Plan, error) {
	done, err := d.act(ctx, "plan", i)
	return domain.Plan{
		Done: done, Processed: &domain.Sighting{},
		Provider: domain.View{Asked: true, Found: domain.Found{Known: true, Status: domain.ChargeCaptured}},
	}, err
}

func (d *desk) ReplayAll(ctx context.Context, f domain.LetterFilter, by, why string, dry bool, pace domain.Pacer, tell func(domain.Bulk)) error {
	how := "bulk"
	if dry {
		how = "bulk plan"
	}
	if _, err := d.act(ctx, how, domain.Instruction{By: by, Why: why}); err != nil {
		return err
	}
	d.filter = f
	for _, b := range d.bulk {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		tell(b)
	}
	return d.ends
}

// post sends an action with the operator's token.
func (b *bundle) post(t *testing.T, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/dead-letters/"+target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	for n := 0; n+1 < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	return b.send(t, r)
}

func TestAnActionIsCarriedOutAsAsked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		target, body string
		header       []string
		ran          string
		want         domain.Instruction
	}{
		"a replay that says nothing": {
			"12/replay", "", nil, "replay",
			domain.Instruction{Kind: domain.ActionReplay, By: "operator token"},
		},
		"a replay by somebody, for a reason": {
			"12/replay", `{"reason":"the provider is back"}`,
			[]string{"X-Operator", "alice"},
			"replay",
			domain.Instruction{Kind: domain.ActionReplay, By: "alice", Why: "the provider is back"},
		},
		"a dry run": {
			"12/replay?dryRun=true", "", nil, "plan",
			domain.Instruction{Kind: domain.ActionReplay, By: "operator token"},
		},
		"no dry run": {
			"12/replay?dryRun=false", "", nil, "replay",
			domain.Instruction{Kind: domain.ActionReplay, By: "operator token"},
		},
		"a discard": {
			"12/discard", `{"reason":"seen there","outcome":"charged","providerChargeId":"ch_1"}`, nil, "discard",
			domain.Instruction{
				Kind: domain.ActionDiscard, By: "operator token", Why: "seen there",
				Outcome: domain.OutcomeCharged, ProviderChargeID: "ch_1",
			},
		},
		"a discard to look at": {
			"12/discard?dryRun=true", `{"reason":"given up"}`, nil, "plan",
			domain.Instruction{Kind: domain.ActionDiscard, By: "operator token", Why: "given up"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			got := b.post(t, test.target, test.body, test.header...)
			require.Equal(t, http.StatusOK, got.Code, got.Body.String())
			test.want.LetterID = 12
			require.Equal(t, []domain.Instruction{test.want}, b.desk.asked)
			require.Equal(t, []string{test.ran}, b.desk.ran)
			dry := test.ran == "plan"
			provider := "not asked"
			if dry {
				provider = "captured"
			}
			require.Equal(t, map[string]any{
				"id": 12., "event_id": theID(1).String(), "dry_run": dry, "result": "sent_round", "state": "replayed",
				"reason": "retries_exhausted", "forward": "sent again under the same key",
				"before": map[string]any{"processed": dry, "intent": "parked", "maybe_sent": true, "charge": nil, "provider": provider},
			}, decode(t, got))
		})
	}
}

func TestAnActionThatCannotBeSaysWhy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		target, body string
		header       []string
		fault        error
		status       int
		detail       string
	}{
		"no letter":                     {target: "12/replay", fault: domain.ErrNoLetter, status: 404, detail: "no such dead letter"},
		"a letter that is not open":     {target: "12/replay", fault: &domain.ConflictError{Detail: "it is not open: resolved"}, status: 409, detail: "resolved"},
		"a discard without a reason":    {target: "12/discard", body: `{}`, fault: &domain.InputError{Field: "reason", Detail: "is required"}, status: 422, detail: "reason: is required"},
		"a database that fails":         {target: "12/replay", fault: errors.New("db.internal"), status: 503, detail: "the log has"},
		"an id that is none":            {target: "x/replay", status: 400, detail: "id: must be"},
		"a parameter that is unknown":   {target: "12/replay?dryrun=true", status: 400, detail: "unknown parameter"},
		"a dry run that is none":        {target: "12/replay?dryRun=1", status: 400, detail: "true or false"},
		"a body that is no JSON":        {target: "12/replay", body: `{"reason"`, status: 400, detail: "JSON object"},
		"a body with a misspelt member": {target: "12/discard", body: `{"reason":"r","outcom":"charged"}`, status: 400, detail: "outcom"},
		"a body with something behind":  {target: "12/replay", body: `{} {}`, status: 400, detail: "something follows"},
		"a body of another type":        {target: "12/replay", body: `{}`, header: []string{"Content-Type", "text/plain"}, status: 415, detail: "application/json"},
		"a body without an end":         {target: "12/replay", body: `{"reason":"` + strings.Repeat("x", 70<<10) + `"}`, status: 413, detail: "too large"},
		"a replay with an outcome":      {target: "12/replay", body: `{"outcome":"charged"}`, status: 422, detail: "belong to a discard"},
		"a bulk of resolved letters":    {target: "replay?state=resolved", status: 400, detail: "only open letters"},
		"a bulk of an unknown reason":   {target: "replay?reason=bad_luck", status: 400, detail: "reason: must be one of"},
		"a bulk that is too large":      {target: "replay?limit=501", status: 400, detail: "from 1 to 500"},
		"a bulk since some day":         {target: "replay?since=yesterday", status: 400, detail: "RFC 3339"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.desk.fault = test.fault
			got := b.post(t, test.target, test.body, test.header...)
			require.Equal(t, test.status, got.Code, got.Body.String())
			problem := asProblem(t, got)
			require.Contains(t, problem["detail"], test.detail)
			require.NotContains(t, got.Body.String(), "db.internal")
			if test.fault == nil {
				require.Empty(t, b.desk.asked, "nobody is bothered")
			}
		})
	}
}

func TestABulkTellsWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.desk.bulk = []domain.Bulk{
		{LetterID: 12, Plan: domain.Plan{Done: aDone()}},
		{LetterID: 13, Err: &domain.ConflictError{Detail: "it is not open: resolved"}},
		{LetterID: 14, Err: errors.New("db.internal")},
	}
	target := "replay?reason=retries_exhausted&state=open&since=2026-03-01T00:00:00Z&until=2026-03-02T00:00:00Z&limit=7"
	got := b.post(t, target, `{"reason":"back"}`, "X-Operator", "alice")
	require.Equal(t, http.StatusOK, got.Code, got.Body.String())
	require.Equal(t, domain.LetterFilter{
		Reason: domain.ReasonRetriesExhausted, State: domain.LetterOpen, Limit: 7,
		Since: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC),
	}, b.desk.filter)
	require.Equal(t, []domain.Instruction{{By: "alice", Why: "back"}}, b.desk.asked)
	body := as[map[string]any](t, decode(t, got))
	require.EqualValues(t, 1, body["replayed"])
	require.EqualValues(t, 2, body["refused"])
	require.Nil(t, body["stopped"])
	require.Equal(t, []any{
		map[string]any{"id": 13., "detail": "it is not open: resolved"},
		map[string]any{"id": 14., "detail": "an error of our own or of the database; the log has it"},
	}, body["refusals"])
	require.Contains(t, b.log.String(), "db.internal")

	b.desk.ends = errors.New("db.internal") // what was done is told all the same
	body = as[map[string]any](t, decode(t, b.post(t, "replay?dryRun=true", "")))
	require.Equal(t, []string{"bulk", "bulk plan"}, b.desk.ran)
	require.EqualValues(t, 1, body["replayed"])
	require.Contains(t, body["stopped"], "the log has the reason")
}

func TestOneActionRunsAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) { b.desk.entered, b.desk.release = make(chan struct{}, 2), make(chan struct{}) })
	ends := make(chan int, 2)
	for range 2 {
		go func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/dead-letters/12/replay", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+operatorToken)
			got := httptest.NewRecorder()
			b.server.Handler().ServeHTTP(got, r)
			ends <- got.Code
		}()
	}
	<-b.desk.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a third gives up instead of waiting
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/dead-letters/12/replay", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	got := httptest.NewRecorder()
	b.server.Handler().ServeHTTP(got, r)
	require.Equal(t, http.StatusServiceUnavailable, got.Code)
	require.Empty(t, b.desk.entered, "the second waits for the first")
	close(b.desk.release)
	require.Equal(t, http.StatusOK, <-ends)
	require.Equal(t, http.StatusOK, <-ends)
}

func TestWithoutATokenToAskForAnybodyActs(t *testing.T) {
	t.Parallel()
	b := setup(t, func(b *bundle) { b.cfg = admin.Config{Addr: ":0", Insecure: true} })
	require.Equal(t, http.StatusOK, b.post(t, "12/replay", "").Code)
	require.Equal(t, "anybody", b.desk.asked[0].By)
}
