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

func TestTheWidthFollowsTheLatency(t *testing.T) {
	t.Parallel()
	var p pace
	require.Equal(t, 256, p.width(256), "a provider that nobody knows yet is called wide")
	for range 1000 {
		p.observe(200 * time.Microsecond)
	}
	require.InDelta(t, 14, p.width(256), 3, "a fast one by few")
	require.Equal(t, 3, p.width(3))
	require.Equal(t, 100*time.Millisecond, p.patience(100*time.Millisecond, 12*time.Second), "not less than the least")
	require.Zero(t, p.patience(0, 12*time.Second), "0 waits for all")
	for range 1000 {
		p.observe(300 * time.Millisecond)
	}
	require.Equal(t, 256, p.width(256))
	require.InDelta(t, 900*time.Millisecond, p.patience(100*time.Millisecond, 12*time.Second), float64(50*time.Millisecond))
	for range 1000 {
		p.observe(time.Minute)
	}
	require.Equal(t, 12*time.Second, p.patience(100*time.Millisecond, 12*time.Second), "not more than the budget")
}
