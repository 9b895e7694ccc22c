package run

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
	"example.com/billing/internal/sandbox/broker"
)

const testTopic, testGroup = "orders", "group"

func testWatcher(t *testing.T) *watcher {
	t.Helper()
	b, err := broker.Start(broker.Options{Topics: map[string]int32{testTopic: 3}})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	w, err := newWatcher(b.Addrs(), testTopic, testGroup)
	require.NoError(t, err)
	t.Cleanup(w.close)
	return w
}

func produce(t *testing.T, w *watcher, source Source) Sent {
	t.Helper()
	p, err := NewProducer(source)
	require.NoError(t, err)
	p.Brokers, p.Topic = w.brokers, w.topic
	sent, err := p.Produce(t.Context(), nil)
	require.NoError(t, err)
	return sent
}

func TestWhatIsSentIsWhatASecondConsumerReads(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	require.NoError(t, w.checkEmpty(t.Context()))
	empty, err := w.read(t.Context())
	require.NoError(t, err)
	require.Zero(t, empty.Records)

	sent := produce(t, w, Source{Records: 500, Duplicates: 0.2})
	require.Equal(t, Sent{Records: 500, Unique: 400, Same: 50, Republished: 50, Totals: sent.Totals}, sent)
	topic, err := w.read(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(500), topic.Records)
	require.Len(t, topic.Events, 400)
	require.Zero(t, topic.Foreign)
	require.Empty(t, topic.Conflicting, "encoded anew, it says the same")
	require.ErrorContains(t, w.checkEmpty(t.Context()), "has records already")
}

func TestConflictingRecordsAreFoundInTheTopic(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	sent := produce(t, w, Source{Records: 500, Duplicates: 0.2, Conflicts: 0.05, Invalid: 0.05})
	require.Equal(t, Sent{Records: 500, Unique: 350, Same: 50, Republished: 50, Conflicting: 25, Invalid: 25, Totals: sent.Totals}, sent)
	topic, err := w.read(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(500), topic.Records)
	require.Equal(t, int64(25), topic.Foreign, "invalid ones have no event id")
	require.Len(t, topic.Events, 350)
	require.Len(t, topic.Conflicting, 25)
	require.Len(t, topic.Meanings, 350)
	ordered := make(Totals)
	for _, m := range topic.Meanings {
		amount, ok := new(big.Rat).SetString(m.Amount)
		require.True(t, ok)
		minor := amount.Mul(amount, new(big.Rat).SetInt(power(exponent(m.Currency))))
		if ordered[m.Currency] == nil {
			ordered[m.Currency] = new(big.Int)
		}
		ordered[m.Currency].Add(ordered[m.Currency], minor.Num())
	}
	require.Equal(t, sent.Totals, ordered, "the first record of an event says what was ordered")
}

func TestForeignRecordsAreCounted(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	for _, value := range []string{"no json", `{}`, `{"eventId":"17"}`} {
		require.NoError(t, w.client.ProduceSync(t.Context(), &kgo.Record{Topic: testTopic, Value: []byte(value)}).FirstErr())
	}
	topic, err := w.read(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), topic.Foreign)
	require.Empty(t, topic.Events)
}

func TestLagIsWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	produce(t, w, Source{Records: 90})
	lag, err := w.lag(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(90), lag, "of a group that was never there")

	_, ends, err := w.bounds(t.Context())
	require.NoError(t, err)
	require.Greater(t, ends[0], int64(1))
	var commit kadm.Offsets
	commit.AddOffset(testTopic, 0, ends[0]-1, -1)
	commit.AddOffset(testTopic, 1, ends[1], -1)
	require.NoError(t, w.admin.CommitAllOffsets(t.Context(), testGroup, commit))
	lag, err = w.lag(t.Context())
	require.NoError(t, err)
	require.Equal(t, ends[2]+1, lag)
}

func TestAGroupThatWasThereBeforeIsRefused(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	var commit kadm.Offsets
	commit.AddOffset(testTopic, 0, 0, -1)
	require.NoError(t, w.admin.CommitAllOffsets(t.Context(), testGroup, commit))
	require.ErrorContains(t, w.checkEmpty(t.Context()), "has consumed topic orders before")
}

func TestAnEndlessSourceFinishesItsChunk(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	p, err := NewProducer(Source{Rate: 500, Duplicates: 0.2, FirstOrder: 77})
	require.NoError(t, err)
	p.Brokers, p.Topic = w.brokers, w.topic
	stop := make(chan struct{})
	var reported atomic.Int64
	p.Progress = func(n int64) {
		if reported.Swap(n) < 1000 && n >= 1000 {
			close(stop) // at the end of the first chunk, before the second
		}
	}
	sent, err := p.Produce(t.Context(), stop)
	require.NoError(t, err)
	require.Zero(t, sent.Records%1000)
	require.Equal(t, sent.Records*8/10, sent.Unique)
	require.Equal(t, sent.Records, reported.Load())
	topic, err := w.read(t.Context())
	require.NoError(t, err)
	require.Equal(t, sent.Records, topic.Records)
	require.Len(t, topic.Events, int(sent.Unique))
}

func TestAFileIsSentWhole(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	file := filepath.Join(t.TempDir(), "orders.csv")
	require.NoError(t, os.WriteFile(file, []byte("order_id,total_amount,currency\n1,11.56,USD\n2,100,JPY\n3,0.44,USD\n4,1,USD\n"), 0o600))
	sent := produce(t, w, Source{File: file, Duplicates: 0.2})
	require.Equal(t, Sent{
		Records: 5, Unique: 4, Same: sent.Same, Republished: 1 - sent.Same,
		Totals: Totals{"USD": big.NewInt(1300), "JPY": big.NewInt(100)},
	}, sent)
}

func TestASourceThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for complaint, source := range map[string]Source{
		"--orders or --records": {File: "x.csv", Records: 1},
		"must not be negative":  {Records: -1},
		"zero or above":         {Records: 1, Rate: -1},
		"needs a --rate":        {},
		"no such file":          {File: "nowhere.csv"},
		"uplicates":             {Records: 10, Duplicates: 1.5},
		"onflicts":              {Records: 10, Duplicates: 0.5, Conflicts: 0.5},
	} {
		_, err := NewProducer(source)
		require.ErrorContains(t, err, complaint)
	}
}

func TestOptionsNameAllComplaints(t *testing.T) {
	t.Parallel()
	o := Options{Kafka: "rabbit", Instances: 17, Kills: -1, Timeout: -1, Env: []string{"novalue"}, Billing: "/nowhere/billing"}
	err := o.Validate()
	for _, complaint := range []string{"--kafka rabbit", "--instances 17", "--kills -1", "--partitions 0", "--timeout", "--topic", "--env", "make build", "--rate"} {
		require.ErrorContains(t, err, complaint)
	}
}

func TestBillingGetsItsSettingsFromTheRunOnly(t *testing.T) {
	t.Parallel()
	o := Options{
		Environ: []string{"PATH=/bin", "KAFKA_TOPIC=mine", "DATABASE_URL=mine", "OTEL_SERVICE_NAME=x", "HOME=/h"},
		Env:     []string{"CHARGE_BUDGET=3s"},
	}
	require.Equal(t, []string{"PATH=/bin", "OTEL_SERVICE_NAME=x", "HOME=/h", "A=b", "CHARGE_BUDGET=3s"}, o.childEnviron("A=b"))
	o.Kills = 1
	environ := o.childEnviron()
	require.Contains(t, environ, "KAFKA_SESSION_TIMEOUT=2s")
	require.Equal(t, "CHARGE_BUDGET=3s", environ[len(environ)-1], "the user's word is the last")
	o.Brokers = "kafka:9092"
	require.Contains(t, o.childEnviron(), "KAFKA_SESSION_TIMEOUT=6s")
}

func TestOnlyAProviderThatMayBeAskedTwiceIsFaulty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "latency=20ms": false, "ignore-keys": false, "seed=7": false, "latency=uniform:1ms:900ms": false,
		"latency=2s": true, "latency=lognormal:20ms:200ms": true, "503=0.1": true, "402=0.5": true,
	} {
		faults, err := paymenttest.ParseFaults(text)
		require.NoError(t, err)
		require.Equal(t, want, faulty(faults), text)
	}
}

func testKiller(unique int64, posts *atomic.Int64) *killer {
	return &killer{kills: 4, moments: moments{
		share: killShare * float64(unique) / 4, spread: 1, posts: posts.Load, dice: rand.New(rand.NewPCG(1, 2)),
	}}
}

func TestKillsFallWithinTheirShareOfTheWork(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	k := testKiller(1000, &posts)
	for n := range int64(4) {
		posts.Store(200 * n) // the share of the kill before is over, its own has not begun
		early, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.False(t, k.await(early, nil, int(n), -1), "kill %d at %d", n, 200*n)
		cancel()
		posts.Store(200 * (n + 1))
		require.True(t, k.await(t.Context(), nil, int(n), 0), "kill %d at %d", n, posts.Load())
	}
}

func TestAKillWaitsForWorkAfterTheOneBefore(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	posts.Store(900)
	k := testKiller(1000, &posts)
	idle, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.False(t, k.await(idle, nil, 1, 900))
	posts.Store(901)
	require.True(t, k.await(t.Context(), nil, 1, 900))
}

func TestAnEndlessRunThatEndsKillsNobodyMore(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	posts.Store(5)
	stop := make(chan struct{})
	close(stop)
	require.False(t, testKiller(0, &posts).await(t.Context(), stop, 0, 0))
}

func TestTheConsoleTellsTheSameOnATerminalAndElsewhere(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{false, true} {
		var out strings.Builder
		c := NewConsole(&out, terminal)
		c.show(1, 2, "half of it")
		c.Say("a line of %d words", 4)
		c.done()
		require.Contains(t, out.String(), "half of it")
		require.Contains(t, out.String(), "a line of 4 words\n")
	}
}

// Else it would redraw itself into the lines that follow.
func TestABarWithoutAnEndMovesOnlyWhenItIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := NewConsole(&out, true)
		c.show(1, 0, "one")
		time.Sleep(barPause)
		c.show(2, 0, "two")
		synctest.Wait()
		require.Contains(t, out.String(), "two")
		shown := out.Len()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, shown, out.Len())
		c.done()
		shown = out.Len()
		time.Sleep(time.Second)
		require.Equal(t, shown, out.Len())
	})
}

func TestPartsEndInReverseAndAllOfThem(t *testing.T) {
	t.Parallel()
	p := &parts{}
	var ended []string
	for _, name := range []string{"broker", "database", "provider"} {
		p.onStop(func(context.Context) error { ended = append(ended, name); return errors.New(name) })
	}
	err := p.stop(t.Context())
	require.Equal(t, []string{"provider", "database", "broker"}, ended)
	require.ErrorContains(t, err, "broker")
	require.ErrorContains(t, err, "provider")
	require.NoError(t, p.stop(t.Context()), "they end once")
}

func TestTotalsAreWrittenWithAllDigits(t *testing.T) {
	t.Parallel()
	require.Equal(t, "1.250", Totals{"KWD": big.NewInt(1250)}.decimal("KWD"))
	require.Equal(t, "12.50", Totals{"EUR": big.NewInt(1250)}.decimal("EUR"))
	require.Equal(t, "0", Totals{}.decimal("JPY"))
}
