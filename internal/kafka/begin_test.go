package kafka

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhenALaneBeginsABatch(t *testing.T) {
	t.Parallel()
	type outcome struct {
		seeks, ticks bool
		listens      int // 0: of no matter
	}
	quarter := 2 // of the batches of 8 that setupCrew makes
	for name, c := range map[string]struct {
		own     laneOwn
		waiting int
		busy    bool // no slot is free
		want    outcome
	}{
		"nothing waits: not, but with the next record":  {want: outcome{listens: 1}},
		"a record waits and none is in flight: at once": {waiting: 1, want: outcome{seeks: true}},
		"no slot is free: in turn":                      {waiting: 1, busy: true, want: outcome{seeks: true}},
		"a few wait beside a batch in flight: not yet": {
			waiting: 1, own: laneOwn{flying: 1}, want: outcome{ticks: true, listens: quarter - 1},
		},
		"a quarter of a batch waits beside one in flight: at once": {
			waiting: quarter, own: laneOwn{flying: 1}, want: outcome{seeks: true},
		},
		"a few have waited long enough: at once": {
			waiting: 1, own: laneOwn{flying: 1, pressed: true}, want: outcome{seeks: true},
		},
		"a few have waited long enough, and no slot is free: not yet": {
			waiting: 1, busy: true, own: laneOwn{flying: 1, pressed: true}, want: outcome{ticks: true},
		},
		"as many as may be are in flight: not":     {waiting: 8, own: laneOwn{flying: maxBatches}},
		"a failure pauses the lane: not":           {waiting: 8, own: laneOwn{pausing: true, failures: 1}},
		"after a failure, beside another one: not": {waiting: 8, own: laneOwn{flying: 1, failures: 1, setbacks: 1}},
		"after a failure, alone: at once":          {waiting: 8, own: laneOwn{failures: 1, setbacks: 1}, want: outcome{seeks: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crew := setupCrew(t, 1)
			l := newLane(t.Context(), crew.crew, 0, nil)
			l.own = c.own
			l.prepare()
			if c.busy {
				crew.slots <- struct{}{}
			}
			for offset := range c.waiting {
				l.push(at(int64(offset), 1))
			}
			l.feed()
			l.begin()
			got := outcome{seeks: l.own.seeking, ticks: l.own.ticking}
			if c.want.listens > 0 {
				got.listens = l.listen
			}
			require.Equal(t, c.want, got)
			l.stop()
			if got.seeks && (<-l.admitted).err == nil {
				<-crew.slots
			}
			require.Len(t, crew.slots, map[bool]int{true: 1}[c.busy], "no slot is lost")
		})
	}
}

func TestALaneThatWasStoppedTakesNothingNewThoughItWasAdmitted(t *testing.T) {
	t.Parallel()
	crew := setupCrew(t, 1)
	l := newLane(t.Context(), crew.crew, 0, nil)
	l.push(at(0, 1))
	l.feed()
	l.seek(false)
	brought := <-l.admitted
	require.NoError(t, brought.err)
	l.stop()
	l.launch(brought)
	require.Zero(t, l.own.flying)
	require.Empty(t, crew.slots)
}

func TestALaneThatStopsGivesBackASlotItHasNoUseForAnyMore(t *testing.T) {
	t.Parallel()
	crew := setupCrew(t, 1)
	l := newLane(t.Context(), crew.crew, 0, nil)
	l.push(at(0, 1))
	l.feed()
	l.seekLast()
	require.True(t, l.launchLast(<-l.admitted, false))
	require.Zero(t, l.own.flying)
	require.Empty(t, crew.slots)
}

func TestPausesGrowUntilABatchSucceeds(t *testing.T) {
	t.Parallel()
	l := newLane(t.Context(), setupCrew(t, 1).crew, 0, nil)
	l.prepare()
	for range 20 {
		l.setBack(1, errors.New("no database"))
	}
	require.Greater(t, l.own.pauses.NextBackOff(), lastRetry/3)
	l.recovered()
	require.Less(t, l.own.pauses.NextBackOff(), 2*firstRetry)
	require.Zero(t, l.status().Failures)
}

func TestABatchThatBeginsEndsTheLinger(t *testing.T) {
	t.Parallel()
	crew := setupCrew(t, 2)
	l := newLane(t.Context(), crew.crew, 0, nil)
	l.prepare()
	l.own.flying = 1
	l.push(at(0, 1))
	l.feed()
	l.begin()
	require.True(t, l.own.ticking)
	l.push(at(1, 1))
	l.feed()
	l.begin()
	l.launch(<-l.admitted)
	require.Equal(t, 2, l.own.flying)
	require.False(t, l.own.ticking, "the next few records have to start it anew")
	(<-crew.biller.batches).end(nil)
	l.land(<-l.landed)
	l.stop()
}

func TestALaneWakesUpForWhatMayBeFedAndForNothingElse(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T, offsets ...int64) *lane {
		t.Helper()
		l := newLane(t.Context(), setupCrew(t, 1).crew, 0, nil)
		l.prepare()
		t.Cleanup(l.stop)
		for _, offset := range offsets {
			l.push(at(offset, 1))
		}
		l.feed()
		<-l.arrived
		l.hark(1)
		return l
	}
	many := make([]int64, 20) // more than is fed at a time
	for i := range many {
		many[i] = int64(i)
	}
	require.Len(t, setup(t, many...).arrived, 1)
	require.Empty(t, setup(t, 0, 1).arrived, "all is fed")
	blocked := setup(t, 1, 0)
	require.Empty(t, blocked.arrived, "the second one may not follow until the first one is durable")
	blocked.own.queue.finish(takes(&blocked.own.queue, 1, anyone))
	blocked.hark(1)
	require.Len(t, blocked.arrived, 1)
}
