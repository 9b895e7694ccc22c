package run

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// rolledFacts are those of a clean run in which instance 2 left, and came back while instance 1 left.
func rolledFacts() *Facts {
	f := cleanFacts()
	f.Setup.Instances, f.Setup.Joins = 2, 2
	f.Rolls = []Roll{
		{Left: 2, LeftInFlight: 12, AtSeconds: 1, Members: 1, Settled: true},
		{Left: 1, LeftInFlight: 7, Joined: 2, MovedInFlight: 3, AtSeconds: 2, Members: 1, Settled: true},
	}
	return f
}

func TestJoinsAndLeavesThatMetRecordsInFlightAreClean(t *testing.T) {
	t.Parallel()
	r := Judge(rolledFacts())
	require.Empty(t, failures(r))
	require.Equal(t, Line{"joins and leaves", "3", OK, "1 joined, 2 left"}, lineOf(r, "joins and leaves"))
	require.Equal(t, Line{"of these under load", "3", OK, "met records in flight"}, lineOf(r, "of these under load"))
	require.Equal(t, "of 3 instances", lineOf(r, "ended cleanly").Note)
	require.Empty(t, lineOf(Judge(cleanFacts()), "joins and leaves").Name, "not shown where none was asked for")
}

func TestEachCheckOfJoinsAndLeavesSeesWhatItIsThereFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*Facts)
		fails []string
		note  string
	}{
		"a turn too few": {func(f *Facts) { f.Setup.Joins = 3 }, []string{"joins and leaves"}, "of 3 asked for: 1 joined, 2 left"},
		"a group that did not settle": {
			func(f *Facts) { f.Rolls[1].Settled = false }, []string{"joins and leaves"}, "1 joined, 2 left; did not settle: at 2.0 s",
		},
		"no load at all": {
			func(f *Facts) { f.Rolls[0].LeftInFlight, f.Rolls[1].LeftInFlight, f.Rolls[1].MovedInFlight = 0, 0, 0 },
			[]string{"of these under load"},
			"met records in flight; not so: instance 2 that left at 1.0 s, " +
				"instance 1 that left at 2.0 s, instance 2 that joined at 2.0 s",
		},
		"a leaver that did not end in order": {
			func(f *Facts) { f.Rolls[0].Disorder = "exit status 1" }, []string{"ended cleanly"}, "of 3 instances; exit status 1",
		},
		"an instance at the end that nobody could ask": {
			func(f *Facts) { f.Running = 2 }, []string{"statistics pages"}, "say what the tables say",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := rolledFacts()
			c.spoil(f)
			r := Judge(f)
			require.Equal(t, c.fails, failures(r))
			require.Equal(t, c.note, lineOf(r, c.fails[0]).Note)
		})
	}
}

func TestAJoinThatMetNoLoadIsNamedAndNoFinding(t *testing.T) {
	t.Parallel()
	f := rolledFacts()
	f.Rolls[1].MovedInFlight = 0
	r := Judge(f)
	require.Empty(t, failures(r))
	require.Equal(t, "2", lineOf(r, "of these under load").Value)
	require.Contains(t, lineOf(r, "of these under load").Note, "not so: instance 2 that joined at 2.0 s")
}

func TestATurnWithoutABacklogIsAFindingWhereOneWasAskedFor(t *testing.T) {
	t.Parallel()
	f := rolledFacts()
	require.Empty(t, lineOf(Judge(f), "turns with a backlog").Name, "not shown where none was asked for")
	f.Setup.Backlog = true
	f.Rolls[0].Waiting, f.Rolls[1].Waiting = 1500, 700
	r := Judge(f)
	require.Empty(t, failures(r))
	require.Equal(t, Line{"turns with a backlog", "2", OK, "700 records at least waited in each partition"}, lineOf(r, "turns with a backlog"))
	f.Rolls[1].Waiting = 0
	r = Judge(f)
	require.Equal(t, []string{"turns with a backlog"}, failures(r))
	require.Equal(t, "1,500 records at least waited in each partition; not so: at 2.0 s: give more --records", lineOf(r, "turns with a backlog").Note)
}

func TestABacklogIsThatOfThePartitionWithTheLeast(t *testing.T) {
	t.Parallel()
	require.Equal(t, int64(2), least(map[int32]int64{0: 7, 1: 2, 2: 9}))
	require.Zero(t, least(map[int32]int64{0: 7, 1: -2}), "more is in flight than is not committed")
	require.Zero(t, least(nil))
}

func TestABacklogNeedsJoinsAndAllRecordsAtOnce(t *testing.T) {
	t.Parallel()
	o := Options{Joins: 1, Instances: 2, Backlog: true, Source: Source{Records: 1200}}
	require.NotContains(t, o.Validate().Error(), "--backlog")
	for _, spoil := range []func(*Options){
		func(o *Options) { o.Joins = 0 }, func(o *Options) { o.Source.Records = 0 }, func(o *Options) { o.Source.Rate = 1 },
	} {
		spoilt := o
		spoil(&spoilt)
		require.ErrorContains(t, spoilt.Validate(), "--backlog: needs --once and --joins, and no --rate")
	}
}

// A clean leave leaves nothing unfinished, so that it explains no second request.
func TestARollExplainsNoRepeatedRequest(t *testing.T) {
	t.Parallel()
	f := rolledFacts()
	f.Ledger.Posts, f.Ledger.RepeatedPosts = 5, 1
	theirs, ours := f.Charges[event(1)], f.Book.Charges[event(1)]
	theirs.Posts, ours.Attempts = 2, 2
	f.Charges[event(1)], f.Book.Charges[event(1)] = theirs, ours
	r := Judge(f)
	require.Equal(t, []string{"POSTs", "repeated POSTs"}, failures(r))
	require.Contains(t, lineOf(r, "repeated POSTs").Note, "not so "+event(1).String()+": 2 POSTs, 0 unfinished after a kill")
}

func TestOneInstanceStaysAndNobodyIsTakenTwice(t *testing.T) {
	t.Parallel()
	all := []*instance{{number: 1}, {number: 2}, {number: 3}}
	m := newMembers(all)
	dice := rand.New(rand.NewPCG(3, 4))
	swaps := 0
	for round := range 1000 {
		before := len(m.running())
		var victim *instance
		if round%2 == 0 {
			victim = m.take(dice)
			require.NotNil(t, victim)
		}
		leaves, joins := m.draw(dice)
		require.True(t, leaves == nil || leaves != victim)
		require.True(t, joins == nil || joins != victim && joins != leaves)
		if leaves != nil {
			require.Greater(t, before, 1, "the last one leaves")
		}
		if leaves != nil && joins != nil {
			swaps++
		}
		m.put(leaves, false)
		m.put(joins, true)
		m.put(victim, true)
		require.NotEmpty(t, m.running())
		require.Empty(t, m.busy)
	}
	require.Positive(t, swaps)
}

func TestWhenAllAreTakenNobodyIsDrawn(t *testing.T) {
	t.Parallel()
	m := newMembers([]*instance{{number: 1}, {number: 2}})
	dice := rand.New(rand.NewPCG(3, 4))
	require.NotNil(t, m.take(dice))
	require.NotNil(t, m.take(dice))
	require.Nil(t, m.take(dice))
	leaves, joins := m.draw(dice)
	require.Nil(t, leaves)
	require.Nil(t, joins)
}

func TestRecordsAreHeldBackUntilTheyAreAllowed(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	p, err := NewProducer(Source{Records: 500, Duplicates: 0.2})
	require.NoError(t, err)
	var sent atomic.Int64
	held, all := make(chan struct{}), make(chan error, 1)
	p.Brokers, p.Topic = w.brokers, w.topic
	p.Progress = func(n int64) {
		if sent.Store(n); n == 120 {
			close(held)
		}
	}
	f := newFeed()
	f.allow(120)
	p.Hold = f.wait
	go func() {
		_, err := p.Produce(t.Context(), nil)
		all <- err
	}()
	<-held
	starved, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.wait(starved, 120), context.DeadlineExceeded)
	require.NoError(t, f.wait(t.Context(), 119))
	require.Equal(t, int64(120), sent.Load())
	f.allow(60)
	require.NoError(t, f.wait(starved, 119), "what was allowed is not taken back")
	f.allow(500)
	require.NoError(t, <-all)
	require.Equal(t, int64(500), sent.Load())
}

func TestTheRecordsOfATurnAreSentWithinIt(t *testing.T) {
	t.Parallel()
	r := roller{rolls: 4, records: 1000}
	require.Equal(t, int64(0), r.upTo(0, 0))
	require.Equal(t, int64(225), r.upTo(0, 1))
	require.Equal(t, r.upTo(1, 1), r.upTo(2, 0))
	require.Equal(t, int64(900), r.upTo(3, 1), "a rest is charged by those there are at the end")
}

func TestAPartitionThatChangesHandsIsSeen(t *testing.T) {
	t.Parallel()
	a, b := &instance{}, &instance{}
	type lanes = map[*instance]map[int32]int
	before := lanes{a: {0: 5, 1: 6}}
	require.False(t, handed(before, lanes{a: {0: 0, 1: 9}}))
	require.False(t, handed(before, lanes{a: {0: 5, 1: 6}, b: {}}), "it only came up")
	require.True(t, handed(before, lanes{a: {0: 5}}))
	require.True(t, handed(before, lanes{a: {0: 5, 2: 0}}))
	require.True(t, handed(lanes{a: {0: 5}, b: {}}, lanes{a: {0: 5}, b: {1: 0}}))
	require.Equal(t, 11, totals(before))
}

func TestAGroupIsSettledWhenItsMembersOwnEveryPartition(t *testing.T) {
	t.Parallel()
	w := testWatcher(t)
	_, err := w.stands(t.Context())
	require.ErrorContains(t, err, "GROUP_ID_NOT_FOUND", "nobody has joined yet")
	join := func() *kgo.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.ConsumerGroup(testGroup), kgo.ConsumeTopics(testTopic))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	settled := func(members int) func() bool {
		return func() bool {
			s, err := w.stands(t.Context())
			return err == nil && s.settled(members)
		}
	}
	first := join()
	require.Eventually(t, settled(1), 20*time.Second, rollLook)
	require.False(t, settled(2)(), "one only")
	join()
	require.Eventually(t, settled(2), 20*time.Second, rollLook)
	first.Close()
	require.Eventually(t, settled(1), 20*time.Second, rollLook)
	for spoilt, s := range map[string]standing{
		"moving":           {moving: true, members: 2, owned: 3, partitions: 3},
		"a member more":    {members: 3, owned: 3, partitions: 3},
		"one without home": {members: 2, owned: 2, partitions: 3},
	} {
		require.False(t, s.settled(2), spoilt)
	}
}

func TestJoinsNeedInstancesAndRecords(t *testing.T) {
	t.Parallel()
	o := Options{Joins: 6, Instances: 1, Source: Source{Records: 1199}}
	require.ErrorContains(t, o.Validate(), "--joins 6: needs --instances 2 or more")
	require.ErrorContains(t, o.Validate(), "--joins 6: needs --records 1200 or more")
	o.Instances, o.Source.Records = 2, 1200
	require.NotContains(t, o.Validate().Error(), "--joins")
	o.Joins = -1
	require.ErrorContains(t, o.Validate(), "--joins -1: want 0 to 1000")
	o.Joins = 1
	require.Contains(t, o.childEnviron(), "KAFKA_SESSION_TIMEOUT=6s")
	o.Kills = 1
	require.Contains(t, o.childEnviron(), "KAFKA_SESSION_TIMEOUT=2s")
}

func TestATurnIsToldInOneLine(t *testing.T) {
	t.Parallel()
	f := rolledFacts()
	require.Equal(t, "instance 1 left with 7 records in flight; instance 2 joined, 3 in flight as partitions moved, "+
		"at 2.0 s, after 0 POSTs: 1 members settled after 0.0 s", f.Rolls[1].String())
	f.Rolls[0].Settled = false
	require.Contains(t, f.Rolls[0].String(), "NOT SETTLED after")
}
