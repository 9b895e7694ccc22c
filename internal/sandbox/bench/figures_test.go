package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// noon is when things happen in these tests.
func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// evenly are n commits, so far apart, of orders 1 to n.
func evenly(n int, apart time.Duration) []commit {
	all := make([]commit, n)
	for i := range all {
		all[i] = commit{order: int64(i + 1), at: noon().Add(time.Duration(i) * apart)}
	}
	return all
}

func TestTheRateGoesFromTheFirstRequestToTheLastCommit(t *testing.T) {
	t.Parallel()
	// The request came a second before the first of 11 commits, which took a second.
	meter := Meter{First: noon().Add(-time.Second).UnixNano()}
	require.InDelta(t, 5.5, wallRate(evenly(11, 100*time.Millisecond), meter), 1e-9)
}

func TestTheSteadyRateLeavesStartAndEndOut(t *testing.T) {
	t.Parallel()
	commits := evenly(1000, time.Millisecond)
	for i := range 40 { // a slow start, and stragglers
		commits[i].at = commits[i].at.Add(-time.Hour)
		commits[len(commits)-1-i].at = commits[len(commits)-1-i].at.Add(time.Hour)
	}
	require.InDelta(t, 1000, steady(commits), 1)
	require.Zero(t, steady(nil))
	require.Zero(t, steady(evenly(100, 0)), "one batch: no time passed")
}

func TestLatenciesAreFromSendToCommitWithoutTheWarmUp(t *testing.T) {
	t.Parallel()
	sent := make(map[int64]time.Time)
	var commits []commit
	for i := range int64(1000) {
		at := noon().Add(time.Duration(i) * 5 * time.Millisecond)
		took := 3 * time.Millisecond
		switch {
		case i < 100:
			took = time.Minute // the warm-up
		case i%20 == 0:
			took = 40 * time.Millisecond
		}
		sent[i] = at
		commits = append(commits, commit{order: i, at: at.Add(took)})
	}
	median, worst := latencies(sent, commits)
	require.InDelta(t, 3, median, 1e-9)
	require.InDelta(t, 40, worst, 1e-9)
}

func TestSumsThatAreWrongVoidARun(t *testing.T) {
	t.Parallel()
	right := func() (counted, paymenttest.Ledger) {
		return counted{received: 10, processed: 9, duplicates: 1, captured: 9},
			paymenttest.Ledger{Posts: 9, Captures: 9, CapturedMinor: map[string]string{"EUR": "900"}}
	}
	for name, c := range map[string]struct {
		spoil func(*counted, *paymenttest.Ledger)
		says  string
	}{
		"nothing wrong":             {func(*counted, *paymenttest.Ledger) {}, ""},
		"a request too many":        {func(_ *counted, l *paymenttest.Ledger) { l.Posts++ }, "requests 10, want 9"},
		"a double charge":           {func(_ *counted, l *paymenttest.Ledger) { l.DoubleCharges++ }, "double charges 1, want 0"},
		"a capture missing":         {func(_ *counted, l *paymenttest.Ledger) { l.Captures-- }, "captures 8, want 9"},
		"another amount":            {func(_ *counted, l *paymenttest.Ledger) { l.CapturedMinor["EUR"] = "901" }, `EUR captured in minor units: "901", want 900`},
		"a record not received":     {func(n *counted, _ *paymenttest.Ledger) { n.received-- }, "received 9, want 10"},
		"a duplicate not seen":      {func(n *counted, _ *paymenttest.Ledger) { n.duplicates-- }, "duplicates 0, want 1"},
		"a dead letter":             {func(n *counted, _ *paymenttest.Ledger) { n.letters++ }, "dead letters 1, want 0"},
		"an event processed twice":  {func(n *counted, _ *paymenttest.Ledger) { n.processed++ }, "processed 10, want 9"},
		"a capture booked too much": {func(n *counted, _ *paymenttest.Ledger) { n.captured++ }, "captured 10, want 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, l := right()
			c.spoil(&n, &l)
			require.Equal(t, c.says, wrong(9, 10, map[string]int64{"EUR": 900}, n, l, 9))
		})
	}
	n, l := right()
	require.Equal(t, "charges 8, want 9", wrong(9, 10, map[string]int64{"EUR": 900}, n, l, 8))
	require.Empty(t, brokenOff(l))
	l.RepeatedPosts = 1
	require.Contains(t, brokenOff(l), "repeated requests 1")
}

func TestMedianAndMostAreOfTheModeAndScenarioAsked(t *testing.T) {
	t.Parallel()
	r := Report{Runs: []Run{
		{Scenario: "a", Mode: Billing, Rate: 30},
		{Scenario: "a", Mode: Billing, Rate: 10},
		{Scenario: "a", Mode: Billing, Rate: 20},
		{Scenario: "a", Mode: Sequential, Rate: 99},
		{Scenario: "b", Mode: Billing, Rate: 98},
	}}
	require.InDelta(t, 20, *r.of("a", Billing).median(rate), 0)
	require.InDelta(t, 30, *r.of("a", Billing).most(rate), 0)
	require.Nil(t, r.of("c", Billing).median(rate))
}

func TestAGoalIsJudgedOnlyWhereBothSidesWereMeasured(t *testing.T) {
	t.Parallel()
	two, four := 2.0, 4.0
	for name, c := range map[string]struct {
		row  Row
		want Verdict
	}{
		"above a lower bound":   {Row{}.atLeast(2, ratio(&four, &two), ""), Reached},
		"below a lower bound":   {Row{}.atLeast(2.1, ratio(&four, &two), ""), Missed},
		"below an upper bound":  {Row{}.atMost(2, ratio(&four, &two), ""), Reached},
		"above an upper bound":  {Row{}.atMost(1.9, ratio(&four, &two), ""), Missed},
		"without the yardstick": {Row{}.atLeast(1, ratio(&four, nil), ""), NoGoal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.row.Verdict)
		})
	}
}

func TestTheDocumentKeepsWhatIsWrittenByHand(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	billing := 1234.0
	r := Report{Scale: 1, Rows: []Row{{Scenario: "0ms", Figure: "charges/s", Billing: &billing}}}
	_, err := r.WriteDocument(path, sectionMain)
	require.NoError(t, err)

	made, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(made), "1,234")
	require.NoError(t, os.WriteFile(path, append([]byte("By hand.\n\n"), made...), 0o600))

	billing = 5678
	data, err := r.WriteDocument(path, sectionMain)
	require.NoError(t, err)
	growth := Report{Scale: 1, Rows: []Row{{Scenario: "rows", Figure: "charges/s", Billing: &billing}}}
	_, err = growth.WriteDocument(path, sectionGrowth)
	require.NoError(t, err)
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(again), "By hand.\n"))
	require.NotContains(t, string(again), "1,234")
	require.Equal(t, 2, strings.Count(string(again), "5,678"), "one in each section")
	require.FileExists(t, data)

	require.NoError(t, os.WriteFile(path, []byte("# No marks\n"), 0o600))
	_, err = r.WriteDocument(path, sectionMain)
	require.ErrorContains(t, err, "no section between")
}

func TestAPlotIsLinkedOnlyWhenLatenciesWereMeasured(t *testing.T) {
	t.Parallel()
	r := Report{Scale: 1}
	require.NotContains(t, r.markdown("x.svg"), "x.svg")
	r.Points = []Point{{LatencyMS: 1}}
	require.Contains(t, r.markdown("x.svg"), "(x.svg)")
	require.NotContains(t, r.markdown("x.svg"), "small run")
	r.Scale = 0.5
	require.Contains(t, r.markdown("x.svg"), "small run")
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		value  float64
		digits int
	}{
		"0": {0, 0}, "999": {999, 0}, "1,000": {999.6, 0}, "1,234,567.50": {1234567.5, 2}, "-1,234": {-1234, 0},
	} {
		require.Equal(t, want, thousands(c.value, c.digits))
	}
}

func TestOptionsComplainOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	o := Options{Scale: 2, Rounds: 2, Growth: true, Only: []string{"0ms", "warp"}, Billing: "/nowhere/billing", Sandbox: os.Args[0]}
	err := o.Validate()
	for _, says := range []string{"--scale", "--rounds 2: want an odd", "--partitions", "exclude each other", "--only warp", "make build"} {
		require.ErrorContains(t, err, says)
	}
	o = Options{Scale: 1, Rounds: 3, Partitions: 6, Only: Names(), Billing: os.Args[0], Sandbox: os.Args[0]}
	require.NoError(t, o.Validate())
	o.Scale = 0.0013
	require.Equal(t, smallest, o.scaled(1000))
	o.Scale = 0.02
	require.Equal(t, 1010, o.scaled(50_999), "a tenth is a whole number")
}

func TestSequentialIsBillingByItsEnvironmentAlone(t *testing.T) {
	t.Parallel()
	require.Empty(t, Billing.settings(6))
	require.Equal(t, []string{"BATCH_MAX=1", "MAX_TRANSACTIONS=6", "MAX_IN_FLIGHT=6", "DATABASE_MAX_CONNS=20"}, Sequential.settings(6))
	require.Contains(t, Sequential.settings(24), "DATABASE_MAX_CONNS=32")
}

func TestASettingOfBillingDoesNotLeakIntoTheChildren(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"PATH=/bin", "GOMAXPROCS=1", "OTEL_TRACES_SAMPLER=always_on", "X=1"},
		environ([]string{"PATH=/bin", "BATCH_MAX=7", "GOMAXPROCS=1", "PATHOLOGY=1", "OTEL_TRACES_SAMPLER=always_on"}, "X=1"))
}

func TestProcessorTimeAndMemoryOfAnotherProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read x`)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 5))
	require.NoError(t, err)
	used, err := cpuTime(cmd.Process.Pid)
	require.NoError(t, err)
	peak, err := peakMemory(cmd.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, in.Close())
	_ = cmd.Wait()
	// The kernel's own account of the same process: at least what was read before its end.
	state := cmd.ProcessState
	require.Positive(t, used)
	require.LessOrEqual(t, used, state.UserTime()+state.SystemTime()+20*time.Millisecond)
	require.Greater(t, used, (state.UserTime()+state.SystemTime())/2)
	require.Greater(t, peak, int64(100_000))
	require.Less(t, peak, int64(100_000_000))

	_, err = cpuTime(0)
	require.ErrorIs(t, err, errNoProc)
	_, err = peakMemory(0)
	require.ErrorIs(t, err, errNoProc)
}

func TestTheCeilingIsMeasuredForAboutTheSameTimeAtEveryLatency(t *testing.T) {
	t.Parallel()
	require.Equal(t, 50_000, ceilingRequests(16, 0, 1), "as fast as it goes")
	require.Equal(t, 25_600, ceilingRequests(512, 50*time.Millisecond, 1), "2.5 s at 512 every 50 ms")
	require.Equal(t, 50_000, ceilingRequests(1024, 5*time.Millisecond, 1), "no more than it can do")
	require.Equal(t, 10_000, ceilingRequests(16, 0, 0.01), "a fifth at least")
}
