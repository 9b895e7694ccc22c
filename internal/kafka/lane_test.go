package kafka

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLane(t *testing.T) {
	t.Parallel()

	t.Run("an idle lane's position moves to the end of the partition", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t)
		l.reachEnd(mark{offset: 12, epoch: 1})
		require.Equal(t, mark{offset: 12, epoch: 1}, <-l.notes)
		require.EqualValues(t, 12, l.status().Done)
	})
	t.Run("the end counts only once everything before it is durable", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t)
		l.fill(3)
		first := l.biller.next(t, 3)
		l.fill(4)
		l.reachEnd(mark{offset: 9})
		l.silent(t, "a batch is in flight")
		first.end(nil)
		l.noted(t, 4)
		second := l.biller.next(t, 4)
		l.silent(t, "another one is")
		second.end(nil)
		l.noted(t, 5, 9)
	})
	t.Run("an end with records behind it is no end", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t)
		l.fill(3)
		first := l.biller.next(t, 3)
		l.reachEnd(mark{offset: 9})
		l.fill(20)
		first.end(nil)
		l.noted(t, 4)
		second := l.biller.next(t, 20)
		l.silent(t, "the end was given up")
		second.end(nil)
		l.noted(t, 21)
		require.EqualValues(t, 21, l.status().Done)
		l.silent(t, "it does not go back to the end given up")
	})
	t.Run("a failed batch moves nothing, also when the end is known", func(t *testing.T) {
		t.Parallel()
		l := setupLane(t)
		l.fill(3)
		first := l.biller.next(t, 3)
		l.fill(4)
		l.reachEnd(mark{offset: 9})
		first.end(errors.New("no database"))
		again := l.biller.next(t, 3) // no more, though more wait
		l.silent(t, "nothing is durable")
		require.Equal(t, 1, l.status().Failures)
		require.Equal(t, "no database", l.status().LastError)
		require.EqualValues(t, 3, l.status().Done)
		again.end(nil)
		l.noted(t, 4)
		l.biller.next(t, 4).end(nil)
		l.noted(t, 5, 9)
		require.Zero(t, l.status().Failures)
		require.Empty(t, l.status().LastError)
	})
	t.Run("a repeated offset is handed over again once all before it is durable", func(t *testing.T) {
		t.Parallel()
		l := setupCrew(t, 8).lane(t, 0, nil)
		l.fill(3)
		first := l.biller.next(t, 3)
		l.fill(3, 4, 3)
		l.biller.none(t, "the same record is in flight")
		first.end(nil)
		l.noted(t, 4)
		second := l.biller.next(t, 3, 4)
		l.biller.none(t, "it is again")
		second.end(nil)
		l.noted(t, 5)
		l.biller.next(t, 3).end(nil)
		l.noted(t, 4)
	})
	t.Run("nothing is taken while intake is not admitted, and a stop ends the wait", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 1)
		crew.biller.admit = make(chan error)
		l := crew.lane(t, 0, nil)
		l.fill(3)
		l.await(t, "waiting", func(s PartitionStatus) bool { return s.State == Waiting })
		crew.biller.admit <- errors.New("intake is not to be had")
		crew.biller.admit <- nil
		first := l.biller.next(t, 3)
		l.fill(4)
		first.end(nil)
		l.noted(t, 4)
		l.stop()
		<-l.done
		require.Equal(t, 1, l.status().Queued)
		require.Empty(t, crew.slots, "no slot is lost")
	})
	t.Run("a lane waits for an earlier one of its partition", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		earlier := crew.lane(t, 0, nil)
		earlier.fill(3)
		first := crew.biller.next(t, 3)
		earlier.stop()
		l := crew.lane(t, 0, earlier.lane)
		l.fill(3)
		crew.biller.none(t, "two lanes at once")
		first.end(nil)
		l.noted(t, 4)
		crew.biller.next(t, 3).end(nil)
		l.noted(t, 4)
	})
}

// setupFull starts a lane whose first records are in flight in one batch each.
func setupFull(t *testing.T, crew *crewBundle, firsts ...int64) (*laneBundle, []*handed) {
	t.Helper()
	l := crew.lane(t, 0, nil)
	var begun []*handed
	for _, offset := range firsts {
		l.fill(offset)
		begun = append(begun, l.biller.next(t, offset))
	}
	return l, begun
}

func TestLaneWithSeveralBatchesInFlight(t *testing.T) {
	t.Parallel()

	t.Run("the position follows the durable prefix, in whatever order they end", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2, 3)
		begun[2].end(nil)
		l.await(t, "one has ended", func(s PartitionStatus) bool { return s.Batches == 2 })
		require.Equal(t, 2, l.status().Queued, "what is durable behind a gap does not wait any more")
		l.silent(t, "two before it are in flight")
		begun[0].end(nil)
		l.noted(t, 2)
		begun[1].end(nil)
		l.noted(t, 4)
		l.await(t, "idle", func(s PartitionStatus) bool { return s.State == Idle && s.InFlight == 0 && s.Queued == 0 })
	})
	t.Run("another one begins at once when it is worthwhile, a small one after a moment", func(t *testing.T) {
		t.Parallel()
		l, _ := setupFull(t, setupCrew(t, 8), 1)
		l.fill(2, 3, 4) // a quarter of a batch is two
		began := l.clock.Now()
		second := <-l.biller.batches
		require.GreaterOrEqual(t, len(second.records), l.worthwhile())
		if len(second.records) == 2 {
			l.biller.next(t, 4)
			require.GreaterOrEqual(t, l.clock.Now().Sub(began), lingerFor)
		}
		l.fill(5)
		began = l.clock.Now()
		l.biller.next(t, 5)
		require.GreaterOrEqual(t, l.clock.Now().Sub(began), lingerFor)
	})
	t.Run("there are at most so many", func(t *testing.T) {
		t.Parallel()
		firsts := []int64{1, 2, 3, 4, 5, 6, 7, 8}
		require.Len(t, firsts, maxBatches)
		l, begun := setupFull(t, setupCrew(t, 20), firsts...)
		l.fill(9, 10, 11, 12)
		l.biller.none(t, "enough are in flight")
		require.Equal(t, maxBatches, l.status().Batches)
		begun[4].end(nil)
		l.biller.next(t, 9, 10, 11, 12)
	})
	t.Run("a small one takes no slot that another lane waits for", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 2)
		l, begun := setupFull(t, crew, 1, 2)
		l.fill(3)
		l.biller.none(t, "no slot is free")
		other := crew.lane(t, 1, nil)
		other.fill(100)
		other.await(t, "waiting", func(s PartitionStatus) bool { return s.State == Waiting })
		time.Sleep(4 * lingerFor) // so that a queue for the slot would have the first lane in front
		begun[0].end(nil)
		l.biller.next(t, 100).end(nil)
		l.biller.next(t, 3)
	})
	t.Run("a failure of one lets the others go on, and moves no offset past itself", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2, 3)
		begun[1].end(errors.New("deadlock"))
		l.await(t, "pausing", func(s PartitionStatus) bool { return s.State == Retrying })
		begun[2].end(nil)
		begun[0].end(nil)
		l.noted(t, 2)
		require.Equal(t, 1, l.status().Failures, "a success that began before it says nothing about it")
		again := l.biller.next(t, 2)
		again.end(nil)
		l.noted(t, 4)
		l.await(t, "recovered", func(s PartitionStatus) bool { return s.Failures == 0 })
	})
	t.Run("after a failure there is one at a time, as small as the one that failed, until one succeeds", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2, 3)
		begun[1].end(errors.New("deadlock"))
		l.await(t, "pausing", func(s PartitionStatus) bool { return s.State == Retrying })
		l.fill(9, 10, 11, 12)
		l.await(t, "the pause is over", func(s PartitionStatus) bool { return s.State == Billing })
		l.biller.none(t, "two that began before are still in flight")
		begun[0].end(nil)
		begun[2].end(nil)
		again := l.biller.next(t, 2)
		l.biller.none(t, "one at a time")
		again.end(errors.New("deadlock"))
		again = l.biller.next(t, 2)
		l.biller.none(t, "still")
		again.end(nil)
		wide := <-l.biller.batches
		require.Greater(t, len(wide.records), 1, "wide again")
	})
	t.Run("failures of batches that began together are one", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2, 3)
		for _, b := range begun {
			b.end(errors.New("no database"))
		}
		l.await(t, "all have ended", func(s PartitionStatus) bool { return s.Batches == 0 })
		require.Equal(t, 1, l.status().Failures)
		l.biller.next(t, 1).end(nil)
		l.biller.next(t, 2, 3).end(nil)
		l.noted(t, 2, 4)
	})
	t.Run("a stop lets all of them finish and takes no other", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		l, begun := setupFull(t, crew, 1, 2, 3)
		l.stop()
		l.fill(4)
		require.NoError(t, begun[1].ctx.Err())
		begun[0].end(nil)
		begun[1].end(nil)
		l.reaches(t, 3)
		require.False(t, l.ended())
		begun[2].end(errors.New("lost"))
		<-l.done
		l.silent(t, "what failed is not durable")
		require.EqualValues(t, 3, l.status().Done)
		require.Empty(t, crew.slots)
		require.Empty(t, crew.flights.owners)
	})
	t.Run("a stop bills what was passed over, so that no gap is left behind", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		l := crew.lane(t, 0, nil)
		l.push(orderAt(0, 1, 1))
		first := l.biller.next(t, 0)
		l.push(orderAt(1, 1, 1))
		l.push(orderAt(2, 2, 2))
		l.biller.next(t, 2).end(nil)
		l.push(orderAt(3, 1, 1)) // overtaken by nobody: it is left to the next owner
		l.biller.none(t, "the event is in flight")
		l.stop()
		l.biller.none(t, "still")
		first.end(nil)
		l.biller.next(t, 1).end(nil)
		l.reaches(t, 3)
		<-l.done
		require.Empty(t, crew.slots)
		require.Empty(t, crew.flights.owners)
		require.Equal(t, 1, l.status().Queued)
	})
	t.Run("a stop leaves gaps where intake is not to be had, the lane fails or is cancelled", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(*laneBundle, *handed){
			"not admitted": func(l *laneBundle, first *handed) {
				l.stop()
				first.end(nil)
				l.biller.admit <- errors.New("intake is not to be had")
			},
			"fails": func(l *laneBundle, first *handed) {
				l.stop()
				first.end(errors.New("deadlock"))
			},
			"cancelled": func(l *laneBundle, first *handed) {
				l.cancel()
				first.end(nil)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				crew := setupCrew(t, 8)
				crew.biller.admit = make(chan error)
				l := crew.lane(t, 0, nil)
				l.push(orderAt(0, 1, 1))
				crew.biller.admit <- nil
				first := l.biller.next(t, 0)
				l.push(orderAt(1, 1, 1))
				l.push(orderAt(2, 2, 2))
				crew.biller.admit <- nil
				l.biller.next(t, 2).end(nil)
				end(l, first)
				<-l.done
				require.Less(t, l.status().Done, int64(3))
				require.Empty(t, crew.slots)
				require.Empty(t, crew.flights.owners)
			})
		}
	})
	t.Run("a failing lane that stops tries nothing again", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2)
		begun[0].end(errors.New("deadlock"))
		l.await(t, "pausing", func(s PartitionStatus) bool { return s.State == Retrying })
		l.stop()
		l.biller.none(t, "it has failed")
		begun[1].end(nil)
		<-l.done
		l.silent(t, "there is a gap")
	})
	t.Run("a cancelled lane waits for no other lane", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		other, l := crew.lane(t, 1, nil), crew.lane(t, 0, nil)
		other.push(orderAt(100, 1, 1))
		crew.biller.next(t, 100)
		l.push(orderAt(0, 1, 1))
		l.push(orderAt(1, 2, 2))
		crew.biller.next(t, 1).end(nil)
		l.await(t, "one is durable behind a gap", func(s PartitionStatus) bool { return s.Queued == 1 })
		l.stop()
		crew.biller.none(t, "the event is in flight in the other lane")
		require.False(t, l.ended())
		l.cancel()
		<-l.done
	})
	t.Run("a cancellation reaches all of them", func(t *testing.T) {
		t.Parallel()
		l, begun := setupFull(t, setupCrew(t, 8), 1, 2)
		l.cancel()
		for _, b := range slices.Backward(begun) {
			<-b.ctx.Done()
			b.end(b.ctx.Err())
		}
		<-l.done
		l.silent(t, "nothing is durable")
	})
}

func TestLaneWaitsForWhatIsInFlight(t *testing.T) {
	t.Parallel()

	t.Run("a record whose event or order is in flight is passed over, those behind it go on", func(t *testing.T) {
		t.Parallel()
		l := setupCrew(t, 8).lane(t, 0, nil)
		l.push(orderAt(0, 1, 1))
		first := l.biller.next(t, 0)
		l.push(orderAt(1, 1, 1)) // its event
		l.push(orderAt(2, 2, 1)) // its order
		l.push(orderAt(3, 3, 3))
		second := l.biller.next(t, 3)
		second.end(nil)
		l.biller.none(t, "the first one is still in flight")
		l.silent(t, "nothing passes the gap")
		first.end(nil)
		l.noted(t, 1)
		l.biller.next(t, 1, 2).end(nil)
		l.noted(t, 4)
		l.biller.none(t, "nothing is billed twice")
	})
	t.Run("they wait for a batch of another lane too", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		other, l := crew.lane(t, 1, nil), crew.lane(t, 0, nil)
		other.push(orderAt(100, 1, 1))
		first := crew.biller.next(t, 100)
		l.push(orderAt(0, 1, 1))
		crew.biller.none(t, "its event is in flight in the other lane")
		require.Equal(t, Waiting, l.status().State)
		l.push(orderAt(1, 2, 2))
		crew.biller.next(t, 1).end(nil)
		first.end(errors.New("its failure frees them as well"))
		held := crew.biller.next(t, 0)
		crew.biller.none(t, "now it is the other lane that waits")
		held.end(nil)
		l.noted(t, 2)
		crew.biller.next(t, 100).end(nil)
		other.noted(t, 101)
		require.Empty(t, crew.flights.owners)
	})
	t.Run("a batch that is left alone when its lane stops frees them in the end", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 8)
		other, l := crew.lane(t, 1, nil), crew.lane(t, 0, nil)
		other.push(orderAt(100, 1, 1))
		first := crew.biller.next(t, 100)
		other.cancel()
		l.push(orderAt(0, 1, 1))
		crew.biller.none(t, "it has not ended")
		first.end(nil)
		crew.biller.next(t, 0).end(nil)
		l.noted(t, 1)
	})
	t.Run("an empty batch gives its slot back", func(t *testing.T) {
		t.Parallel()
		crew := setupCrew(t, 2)
		l := crew.lane(t, 0, nil)
		l.push(orderAt(0, 1, 1))
		first := l.biller.next(t, 0)
		l.push(orderAt(1, 1, 1))
		l.push(orderAt(2, 1, 1))
		require.Eventually(t, func() bool {
			crew.flights.mu.Lock()
			defer crew.flights.mu.Unlock()
			for _, b := range crew.flights.owners {
				return len(b.heldUp) > 0
			}
			return false
		}, soon, time.Millisecond)
		l.push(orderAt(3, 3, 3))
		l.biller.next(t, 3).end(nil)
		first.end(nil)
		l.biller.next(t, 1, 2).end(nil)
		l.reaches(t, 4)
	})
}
