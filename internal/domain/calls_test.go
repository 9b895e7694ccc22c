package domain

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someItems(n int) []*item {
	items := make([]*item, n)
	for i := range items {
		items[i] = &item{answer: Answer{Kind: Withheld}}
	}
	return items
}

func TestCallsAreHandedOutOnceAndAnsweredAll(t *testing.T) {
	t.Parallel()
	items := someItems(100)
	c := newCalls(items)
	var callers sync.WaitGroup
	for range 7 {
		callers.Go(func() {
			for it := c.next(); it != nil; it = c.next() {
				it.answer.Posts++
				require.True(t, c.answered(it, Answer{Kind: Captured, Posts: it.answer.Posts}))
			}
		})
	}
	c.wait(0)
	callers.Wait()
	for _, it := range items {
		require.Equal(t, Captured, it.answer.Kind)
		require.Equal(t, 1, it.answer.Posts)
		require.False(t, it.left)
	}
}

func TestWhatIsOpenAtTheSoftDeadlineIsLeftBehind(t *testing.T) {
	t.Parallel()
	items := someItems(3)
	c := newCalls(items)
	require.False(t, c.haveBegun(time.Nanosecond), "nobody calls yet")
	for range items {
		require.NotNil(t, c.next())
	}
	require.True(t, c.haveBegun(time.Minute))
	require.True(t, c.answered(items[0], Answer{Kind: Declined}))
	c.wait(time.Nanosecond)
	require.False(t, items[0].left)
	require.True(t, items[1].left)
	require.True(t, items[2].left)
	require.False(t, c.answered(items[1], Answer{Kind: Captured}), "the batch waits no longer")
	require.Equal(t, Withheld, items[1].answer.Kind, "the batch is not told")
	c.end()
	<-c.ended
}

func TestABatchGetsMoreCallersOnlyWhereTheyHelp(t *testing.T) {
	t.Parallel()
	var p pace
	for range 1000 {
		p.observe(200 * time.Microsecond)
	}
	require.Equal(t, 14, p.wider(256, 1, 14, false), "no answer in a while: as many again")
	require.Equal(t, 56, p.wider(256, 1, 200, false), "and no more than there are calls")
	require.Zero(t, p.wider(256, 1, leastWidth, true), "a provider that answers as fast as ever does not get more")
	for range 5000 {
		p.observe(20 * time.Millisecond)
	}
	require.Equal(t, 242, p.wider(256, 1, 14, true), "one that has become slower does")
}

func TestOurOwnLoadIsNotTakenForASlowProvider(t *testing.T) {
	t.Parallel()
	var p pace
	for i := range 4000 {
		latency := time.Millisecond
		if i%4 > 0 {
			latency = 20 * time.Millisecond // waited for a processor
		}
		p.observe(latency)
	}
	require.Greater(t, p.latency(), 12*time.Millisecond)
	require.Less(t, p.width(256, 1), 50, "the fastest answers tell what the provider takes")
}

func TestTheWidthFollowsTheLatency(t *testing.T) {
	t.Parallel()
	var p pace
	require.Equal(t, 16, p.width(256, 1), "a provider that nobody knows yet is taken for a fast one")
	require.Equal(t, widenFirst, p.hesitation(), "and is given time for its first answer")
	for range 1000 {
		p.observe(200 * time.Microsecond)
	}
	require.Equal(t, leastWidth, p.width(256, 1), "a fast one by few")
	require.Equal(t, leastWidth/4, p.width(256, 4), "the fewer the more batches call")
	require.Equal(t, leastShare, p.width(256, 100))
	require.Equal(t, 3, p.width(3, 1))
	require.Equal(t, widenAfter, p.hesitation())
	require.Equal(t, 100*time.Millisecond, p.patience(100*time.Millisecond, 12*time.Second), "not less than the least")
	require.Zero(t, p.patience(0, 12*time.Second), "0 waits for all")
	for range 5000 {
		p.observe(300 * time.Millisecond)
	}
	require.Equal(t, 256, p.width(256, 12), "a slow one by as many as there are calls, however many batches call")
	require.InDelta(t, 900*time.Millisecond, p.patience(100*time.Millisecond, 12*time.Second), float64(50*time.Millisecond))
	for range 1000 {
		p.observe(time.Minute)
	}
	require.Equal(t, 12*time.Second, p.patience(100*time.Millisecond, 12*time.Second), "not more than the budget")
}
