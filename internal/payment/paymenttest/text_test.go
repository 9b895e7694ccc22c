package paymenttest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseFaults(t *testing.T) {
	t.Parallel()
	text := "503-after=0.05, hang=0.01:3s,latency=lognormal:50ms:1s:2s,429=next3:2," +
		"402=1:stolen_card@order:17+18,seed=7,ignore-keys,cut=0.5@key:a+b,308=0.1:http://127.0.0.1:9/a:b"
	faults, err := ParseFaults(text)
	require.NoError(t, err)
	require.Equal(t, Faults{
		Seed: 7, IgnoreKeys: true,
		Latency: Latency{
			Kind: "lognormal", Median: Duration(50 * time.Millisecond),
			P99: Duration(time.Second), Cut: Duration(2 * time.Second),
		},
		Rules: []Rule{
			{Action: "503-after", Rate: 0.05},
			{Action: "hang", Rate: 0.01, Hold: Duration(3 * time.Second)},
			{Action: "429", Next: 3, RetryAfter: 2},
			{Action: "402", Rate: 1, DeclineCode: "stolen_card", Orders: []int64{17, 18}},
			{Action: "cut", Rate: 0.5, Keys: []string{"a", "b"}},
			{Action: "308", Rate: 0.1, Location: "http://127.0.0.1:9/a:b"},
		},
	}, faults)

	text2, err := json.Marshal(faults)
	require.NoError(t, err)
	again, err := decodeFaults(text2)
	require.NoError(t, err)
	require.Equal(t, faults, again, "the JSON form says the same")
}

func TestParseFaultsTellsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"503":                        {`fault "503": want ACTION=PROBABILITY`},
		"503=2,cut=x":                {`"2": want a probability`, `"x": want a probability`},
		"503=next0":                  {"want next and a number above 0"},
		"boom=0.1":                   {"unknown action", "reset-after"},
		"200=0.1":                    {"unknown action"},
		"402-after=0.1":              {"unknown action"},
		"503-later=0.1":              {"unknown action"},
		"hang=0.1:soon":              {`"soon" is no duration`},
		"hang=0.1:11m":               {"hold 11m0s: want 0 to 10m0s"},
		"429=0.1:soon":               {"want Retry-After in whole seconds"},
		"cut=0.1:3s":                 {"cut takes no argument"},
		"503=0.6,500=0.6":            {"rates add up to 1.2"},
		"503=0.1@customer:1":         {`target "customer:1"`},
		"503=0.1@order:x":            {`"x" is no order id`},
		"latency=slow":               {"want a duration, fixed:D"},
		"latency=lognormal:1s":       {"lognormal with 1 durations, want 2 to 3"},
		"latency=lognormal:2s:1s":    {"want 0 < median ≤ p99"},
		"latency=uniform:2s:1s":      {"max is below min"},
		"latency=11m":                {"11m0s: want 0 to 10m0s"},
		"latency=-1s":                {"-1s: want 0 to 10m0s"},
		"seed=x":                     {"want a whole number"},
		"ignore-keys=no":             {"takes no value"},
		"503=NaN":                    {"want a probability"},
		"503=0.1,503=0.1:y,latency=": {`"y": want Retry-After`, "latency="},
	}
	for text, want := range cases {
		_, err := ParseFaults(text)
		for _, complaint := range want {
			require.ErrorContains(t, err, complaint, text)
		}
	}
}

func TestDiceGiveEachRuleItsOwnProbability(t *testing.T) {
	t.Parallel()
	faults, err := ParseFaults("503=0.2,cut=0.3,hang=0.1@order:1,seed=3")
	require.NoError(t, err)
	plan, err := compile(faults)
	require.NoError(t, err)
	const posts = 50_000
	count := map[string]float64{}
	for i := range posts {
		key := fmt.Sprintf("key-%d", i)
		if r := plan.draw(newDice(plan.seed, key, 1), key, 1); r != nil {
			count[r.Action] += 1.0 / posts
		}
		if r := plan.draw(newDice(plan.seed, key, 2), key, 2); r != nil {
			require.NotEqual(t, "hang", r.Action)
		}
	}
	require.InDelta(t, 0.2, count["503"], 0.01)
	require.InDelta(t, 0.3, count["cut"], 0.01)
	require.InDelta(t, 0.1, count["hang"], 0.01)
}

func TestDiceRepeatThemselves(t *testing.T) {
	t.Parallel()
	throws := func(seed uint64, key string, nth int) [3]float64 {
		dice := newDice(seed, key, nth)
		return [3]float64{dice.Float64(), dice.Float64(), dice.Float64()}
	}
	once := throws(1, "key", 1)
	require.Equal(t, once, throws(1, "key", 1))
	require.NotEqual(t, once, throws(2, "key", 1))
	require.NotEqual(t, once, throws(1, "yek", 1))
	require.NotEqual(t, once, throws(1, "key", 2))
}

func TestLatencyHasTheShapeThatWasAskedFor(t *testing.T) {
	t.Parallel()
	sample := func(text string) []time.Duration {
		latency, err := parseLatency(text)
		require.NoError(t, err)
		samples := make([]time.Duration, 20_000)
		for i := range samples {
			samples[i] = latency.sample(newDice(1, strconv.Itoa(i), 1))
		}
		slices.Sort(samples)
		return samples
	}
	lognormal := sample("lognormal:50ms:1s:2s")
	require.InEpsilon(t, 50*time.Millisecond, lognormal[10_000], 0.05)
	require.InEpsilon(t, time.Second, lognormal[19_800], 0.2)
	require.Equal(t, 2*time.Second, lognormal[19_999])

	uniform := sample("uniform:10ms:20ms")
	require.GreaterOrEqual(t, uniform[0], 10*time.Millisecond)
	require.LessOrEqual(t, uniform[19_999], 20*time.Millisecond)
	require.InEpsilon(t, 15*time.Millisecond, uniform[10_000], 0.05)

	fixed := sample("7ms")
	require.Equal(t, 7*time.Millisecond, fixed[0])
	require.Equal(t, 7*time.Millisecond, fixed[19_999])
}

func TestALognormalIsBoundedWithoutACut(t *testing.T) {
	t.Parallel()
	latency := Latency{Kind: "lognormal", Median: Duration(time.Minute), P99: Duration(9 * time.Minute)}
	longest := time.Duration(math.MinInt64)
	for i := range 20_000 {
		longest = max(longest, latency.sample(newDice(1, strconv.Itoa(i), 1)))
	}
	require.Equal(t, MaxHold, longest)
}
