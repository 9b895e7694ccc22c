package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRangesAreWholeDaysAndNamedAsBillingNamesThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("UTC+1", 3600)) // the last of February in UTC
	all := days(3, now)
	var names []string
	for i, s := range all {
		names = append(names, s.leaf())
		require.Equal(t, day, s.to.Sub(s.from))
		if i > 0 {
			require.Equal(t, all[i-1].to, s.from)
		}
	}
	require.Equal(t, []string{"processed_event_20260226_20260227", "processed_event_20260227_20260228", "processed_event_20260228_20260301"}, names)

	id, err := uuid.Parse(floor(time.UnixMilli(0x0195500a7c00)))
	require.NoError(t, err)
	require.Equal(t, "0195500a-7c00-0000-0000-000000000000", id.String())
}

func TestTheLogShowsTroubleOfItsTimeOnly(t *testing.T) {
	t.Parallel()
	log := []byte(`{"time":"2026-03-14T15:00:00Z","level":"ERROR","msg":"before"}
{"time":"2026-03-14T15:00:01Z","level":"INFO","msg":"fine"}
no JSON at all
{"time":"2026-03-14T15:00:01.5Z","level":"WARN","msg":"batch failed","error":"deadlock"}
{"time":"2026-03-14T15:00:02Z","level":"ERROR","msg":"worse"}
{"time":"2026-03-14T15:00:03Z","level":"ERROR","msg":"after"}
`)
	began := time.Date(2026, 3, 14, 15, 0, 1, 0, time.UTC)
	require.Equal(t, []string{"batch failed: deadlock", "worse"}, troubleIn(log, span{began, began.Add(time.Second)}))
}

func TestWhatAnEmptyingDelaysIsHeldAgainstTheTimeBeside(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	e := &emptier{
		turns: []span{{at(100), at(200)}}, whole: span{at(0), at(400)},
		looks:   []look{{at(50), ms(900), ms(30)}, {at(150), ms(40), ms(90)}, {at(199), ms(60), ms(80)}, {at(300), 0, ms(50)}},
		commits: []commit{{1, at(-500)}, {2, at(10)}, {3, at(80)}, {4, at(190)}, {5, at(210)}, {6, at(240)}, {7, at(900)}},
		trouble: []string{"batch failed"},
	}
	rows := e.rows("emptying", "0ms")
	measured := make([]float64, len(rows))
	for i := range rows {
		measured[i] = *rows[i].Measured
	}
	require.Equal(t, []float64{
		60, // the longest wait in the turn
		40, // 90 in the turn, 50 beside
		40, // 110 into the turn, 70 beside
		1,
	}, measured)
	require.Equal(t, Missed, rows[3].Verdict)
	e.looks[1].waiting = ms(501)
	require.Equal(t, Missed, e.rows("emptying", "0ms")[0].Verdict)
}

func TestASmallBenchOfRetentionMeasuresEverything(t *testing.T) {
	t.Parallel()
	options := binaries(t)
	options.Retention = true
	require.NoError(t, options.Validate())
	ctx, cancel := context.WithTimeout(t.Context(), wholeLimit)
	defer cancel()
	report, err := Measure(ctx, options)
	require.NoError(t, err)
	require.Empty(t, report.Void())
	require.Len(t, report.Runs, 4, "two with emptying, two of the page")
	figures := map[string]*float64{}
	for i := range report.Rows {
		figures[report.Rows[i].Figure] = report.Rows[i].Measured
	}
	for _, figure := range []string{
		"rows/s into ranges, beside a plain table", "GET /api/v1/dedup/stats, p99 ms", "charges/s with the page polled each second",
	} {
		require.NotNil(t, figures[figure], figure)
		require.Positive(t, *figures[figure], figure)
	}
	for _, at := range []string{"0ms", "lognormal"} {
		require.NotNil(t, figures["longest wait of a batch for a table, ms, provider "+at])
		require.Contains(t, strings.Join(report.Notes, "\n"), "emptying "+at+": 1 days emptied, 1 of them dropped")
	}
	require.Len(t, report.Notes, 4)
}
